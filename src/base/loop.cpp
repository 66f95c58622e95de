#include "base/loop.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <utility>

#include "base/descriptors.hpp"
#include "base/uninterrupted.hpp"

namespace coretap {

namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGQUIT};  ///< in addition to SIGHUP

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t none() noexcept {
  sigset_t set;
  sigemptyset(&set);
  return set;
}

/// SIGHUP stays ignored if it was ignored at start (nohup). Other signals do not: shells ignore
/// SIGINT for background commands of scripts, and `kill -INT` must still end those.
sigset_t handled() {
  auto set = none();
  for (int s : kEnding) sigaddset(&set, s);
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

sigset_t only(int number) {
  auto set = none();
  sigaddset(&set, number);
  return set;
}

/// Signals that block_signal() blocked and that were unblocked before.
sigset_t blocked_one_by_one = none();

/// Signals that were ignored at start; a child ignores them again.
sigset_t ignored_at_start = none();

}  // namespace

void block_signals() {
  for (int s : kEnding) {
    if (!is_ignored(s)) continue;
    sigaddset(&ignored_at_start, s);
    ::signal(s, SIG_DFL);
  }
  auto set = handled();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void block_signal(int number) {
  auto set = only(number);
  sigset_t before;
  if (sigprocmask(SIG_BLOCK, &set, &before) == 0 && !sigismember(&before, number))
    sigaddset(&blocked_one_by_one, number);
}

void forget_signals() {
  auto set = handled();
  const timespec at_once{};
  while (sigtimedwait(&set, nullptr, &at_once) > 0) continue;
}

void let_signals_kill() {
  auto set = handled();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void unblock_signals() {
  for (int s : kEnding)
    if (sigismember(&ignored_at_start, s)) ::signal(s, SIG_IGN);
  let_signals_kill();
  sigprocmask(SIG_UNBLOCK, &blocked_one_by_one, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

Result<void> Loop::open() {
  auto set = handled();
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  ends_.reset(epoll_create1(EPOLL_CLOEXEC));
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!epoll_ || !ends_ || !signals_) {
    cannot_wait();
    return error_;
  }
  watch(signals(), EPOLLIN, [this] {
    signalfd_siginfo info{};
    if (read(signals(), &info, sizeof info) != sizeof info) return;
    signal_ = static_cast<int>(info.ssi_signo);
    stop();
  });
  ends_with(signals());
  return error_;
}

void Loop::cannot_wait() {
  if (error_) error_ = system_error("cannot wait for events", errno);
}

void Loop::watch(int fd, unsigned events, std::function<void()> callback) {
  watches_.push_back(std::make_unique<Watch>(Watch{fd, Fd(), std::move(callback)}));
  epoll_event e{};
  e.events = events;
  e.data.ptr = watches_.back().get();
  // epoll does not support regular files, and these are always ready.
  if (fd >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) && errno != EPERM) cannot_wait();
}

void Loop::watch_own(Fd fd, std::function<void()> callback) {
  watch(fd.get(), EPOLLIN, std::move(callback));
  watches_.back()->owned = std::move(fd);
}

void Loop::ends_with(int fd) {
  epoll_event e{};
  e.events = EPOLLIN;
  if (epoll_ctl(ends(), EPOLL_CTL_ADD, fd, &e)) cannot_wait();
}

void Loop::soon(std::function<void()> callback) { soon_.push_back(std::move(callback)); }

void Loop::forget(Watch& watch) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch.fd, nullptr);
  watch.owned.reset();
  watch.fd = -1;  // its callback may be running
}

void Loop::forget(int fd) {
  for (auto& w : watches_)
    if (w->fd == fd) forget(*w);
}

void Loop::every(double seconds, std::function<void()> callback) {
  timer(seconds, true, std::move(callback));
}
void Loop::once(double seconds, std::function<void()> callback) {
  timer(seconds, false, std::move(callback));
}
void Loop::stop_after(double seconds) {
  int fd = timer(seconds, false, [this] { stop(); });
  if (fd >= 0) ends_with(fd);
}

int Loop::timer(double seconds, bool repeat, std::function<void()> callback) {
  Fd owned(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const int fd = owned.get();
  if (fd < 0) {
    cannot_wait();
    return fd;
  }
  double whole = 0;
  double fraction = std::modf(seconds, &whole);
  itimerspec spec{};
  spec.it_value = {static_cast<time_t>(whole), static_cast<long>(fraction * 1e9)};
  if (!spec.it_value.tv_sec && !spec.it_value.tv_nsec) spec.it_value.tv_nsec = 1;
  if (repeat) spec.it_interval = spec.it_value;
  if (timerfd_settime(fd, 0, &spec, nullptr)) cannot_wait();
  watch_own(std::move(owned), [this, fd, repeat, callback = std::move(callback)] {
    std::uint64_t ticks = 0;
    if (uninterrupted([&] { return read(fd, &ticks, sizeof ticks); }) < 0) {
      if (errno != EAGAIN) cannot_wait();
      return;
    }
    if (!repeat) forget(fd);
    callback();
  });
  return fd;
}

void Loop::on_signal(int number, std::function<void()> callback) {
  auto ending = handled();
  for (int other : own_signals_) sigdelset(&ending, other);
  sigdelset(&ending, number);
  own_signals_.push_back(number);
  auto set = only(number);
  Fd owned(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  const int fd = owned.get();
  if (fd < 0 || signalfd(signals(), &ending, 0) < 0) return cannot_wait();
  watch_own(std::move(owned), [fd, callback = std::move(callback)] {
    signalfd_siginfo info{};
    if (read(fd, &info, sizeof info) == sizeof info) callback();
  });
}

Result<void> Loop::run() {
  while (!stopped_ && error_) {
    epoll_event ready[8];
    int n = epoll_wait(epoll_.get(), ready, 8, soon_.empty() ? -1 : 0);
    if (n < 0 && errno != EINTR) cannot_wait();
    for (int i = 0; i < n && !stopped_; i++)
      if (auto* w = static_cast<Watch*>(ready[i].data.ptr); w->fd >= 0) w->callback();
    std::erase_if(watches_, [](auto& w) { return w->fd < 0; });
    for (auto& callback : std::exchange(soon_, {}))
      if (!stopped_) callback();
  }
  return error_;
}

}  // namespace coretap
