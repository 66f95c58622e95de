#include "run/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/loop.hpp"

namespace coretap {

Command::~Command() {
  for (int fd : {go_, failed_, pidfd_})
    if (fd >= 0) close(fd);
  if (pid_ > 0 && !started_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

Result<void> Command::prepare(const std::vector<std::string>& words) {
  int go[2], failed[2];
  if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
    return Error{"cannot start the command", strerror(errno)};
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  name_ = words[0];
  for (auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) return Error{"cannot start the command", strerror(errno)};
  if (pid_ == 0) {
    close(go[1]);
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) _exit(127);
    unblock_signals();
    execvp(argv[0], argv.data());
    int error = errno;
    (void)!write(failed[1], &error, sizeof error);
    _exit(127);
  }
  close(go[0]);
  close(failed[1]);
  go_ = go[1];
  failed_ = failed[0];
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) return Error{"cannot watch the command", strerror(errno)};
  return {};
}

Result<void> Command::start() {
  if (write(go_, "", 1) != 1)
    return Error{fmt::format("cannot start '{}'", name_), strerror(errno)};
  started_ = true;
  int error = 0;
  if (read(failed_, &error, sizeof error) == sizeof error) {
    waitpid(pid_, nullptr, 0);
    return Error{fmt::format("cannot run '{}'", name_), strerror(error),
                 "is it in PATH, and executable?"};
  }
  return {};
}

int Command::status() {
  int status = 0;
  if (status_ < 0 && waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

}  // namespace coretap
