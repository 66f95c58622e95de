// The command after --: forked, held until everything is attached, then executed.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// A command that is forked and waits to be released.
class Command {
 public:
  Command() = default;
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Fails with a shell's exit status, 127 or 126, if there is no such command or it cannot be
  /// executed.
  Result<void> prepare(const std::vector<std::string>& words);
  /// Releases it; fails if it cannot be executed.
  Result<void> start();
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  /// After it has ended: its exit status as in a shell.
  int status();

 private:
  pid_t pid_ = -1;
  int status_ = -1;
  Fd pidfd_, go_, failed_;
  bool started_ = false;
  std::string name_;
};

}  // namespace coretap
