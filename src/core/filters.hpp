// The shared filters and the followed command, from the command line into the kernel program.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

class Config;
struct Session;

/// A command that waits, forked, until it is let go.
class Command {
 public:
  Command() = default;
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Result<void> prepare(const std::vector<std::string>& words);
  /// Lets it run; an error if it cannot be executed.
  Result<void> start();
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }
  /// After it has ended: its exit status as a shell tells it.
  int status();

 private:
  pid_t pid_ = -1;
  int pidfd_ = -1, go_ = -1, failed_ = -1, status_ = -1;
  bool started_ = false;
  std::string name_;
};

/// The pid namespace by which this process sees others; nothing if that is the first one.
std::optional<ino_t> own_pid_namespace();

/// Looks the cgroups up that are told apart; --recursive: those below them too.
Result<void> find_cgroups(Config& config);
/// Before load: the filter's constants and the sizes of its maps. Refuses what can match nothing.
Result<void> configure_filters(Session& session, pid_t command);
/// After load: the ids.
Result<void> fill_filters(Session& session, pid_t command);

}  // namespace coretap
