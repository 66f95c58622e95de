#include "run/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/descriptors.hpp"
#include "text/errors.hpp"

namespace coretap {

void close_others(std::initializer_list<Fd*> kept) {
  constexpr int kFirst = 3, kAbove = 100;  // move up first: none is overwritten
  auto to = [](Fd& fd, int copy) {
    if (copy >= 0) return fd.reset(copy);
    print_error("coretap", system_error("cannot start a process", errno));
    _exit(kFailed);
  };
  for (auto* fd : kept)
    if (*fd) to(*fd, fcntl(fd->get(), F_DUPFD_CLOEXEC, kAbove));
  int next = kFirst;
  for (auto* fd : kept)
    if (*fd) to(*fd, dup3(fd->get(), next++, O_CLOEXEC));
  close_range(static_cast<unsigned>(next), ~0U, 0);
}

Child start_child(const std::function<void()>& work, bool output) {
  auto parent = getpid();
  auto pid = fork();
  if (pid < 0) return {};
  if (pid > 0) {
    Child child{pid, Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))};
    if (child.end) return child;
    const int error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    errno = error;
    return {};
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kFailed);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  if (!output) dup2(null, STDOUT_FILENO);
  unsetenv("NOTIFY_SOCKET");
  work();
  _exit(kFailed);
}

}  // namespace coretap
