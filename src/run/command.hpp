// The command behind --: forked, held until everything is attached, then executed.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// A command that waits, forked, until it is let go.
class Command {
 public:
  Command() = default;
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// An error with a shell's exit status, 127 or 126, if there is no such command or it cannot be
  /// executed.
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

}  // namespace coretap
