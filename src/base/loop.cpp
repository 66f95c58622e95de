#include "base/loop.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

namespace coretap {

namespace {

/// A signal that was ignored at start stays ignored: SIGHUP under nohup, SIGINT in the background.
sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    if (sigaction(s, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&set, s);
  }
  return set;
}

sigset_t only(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

/// What block_signal() has blocked, and was not before.
sigset_t& blocked_one_by_one() {
  static sigset_t set = [] {
    sigset_t none;
    sigemptyset(&none);
    return none;
  }();
  return set;
}

}  // namespace

void block_signals() {
  auto set = handled();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void block_signal(int number) {
  auto set = only(number);
  sigset_t before;
  if (sigprocmask(SIG_BLOCK, &set, &before) == 0 && !sigismember(&before, number))
    sigaddset(&blocked_one_by_one(), number);
}

void let_signals_kill() {
  auto set = handled();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void unblock_signals() {
  let_signals_kill();
  sigprocmask(SIG_UNBLOCK, &blocked_one_by_one(), nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

Loop::Loop() = default;

Loop::~Loop() {
  for (auto& w : watches_)
    if (w->owned && w->fd >= 0) close(w->fd);
  if (signals_ >= 0) close(signals_);
  if (epoll_ >= 0) close(epoll_);
}

Result<void> Loop::open() {
  auto set = handled();
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (epoll_ < 0 || signals_ < 0) return Error{"cannot wait for events", strerror(errno)};
  watch(signals_, EPOLLIN, [this] {
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) == sizeof info) {
      signal_ = static_cast<int>(info.ssi_signo);
      stopped_ = true;
    }
  });
  return {};
}

void Loop::watch(int fd, unsigned events, std::function<void()> callback) {
  watches_.push_back(std::make_unique<Watch>(Watch{fd, false, std::move(callback)}));
  epoll_event e{};
  e.events = events;
  e.data.ptr = watches_.back().get();
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e);  // files cannot be watched, and need not be
}

void Loop::forget(Watch& watch) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, watch.fd, nullptr);
  if (watch.owned) close(watch.fd);
  watch.fd = -1;  // it may be its callback that runs
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

void Loop::timer(double seconds, bool repeat, std::function<void()> callback) {
  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) return;
  double whole = 0;
  double fraction = std::modf(seconds, &whole);
  itimerspec spec{};
  spec.it_value = {static_cast<time_t>(whole), static_cast<long>(fraction * 1e9)};
  if (!spec.it_value.tv_sec && !spec.it_value.tv_nsec) spec.it_value.tv_nsec = 1;
  if (repeat) spec.it_interval = spec.it_value;
  timerfd_settime(fd, 0, &spec, nullptr);
  watch(fd, EPOLLIN, [this, fd, repeat, callback = std::move(callback)] {
    std::uint64_t ticks = 0;
    bool passed = read(fd, &ticks, sizeof ticks) == sizeof ticks;
    if (!repeat) forget(fd);
    if (passed) callback();
  });
  watches_.back()->owned = true;
}

void Loop::on_signal(int number, std::function<void()> callback) {
  auto ending = handled();
  for (int other : own_signals_) sigdelset(&ending, other);
  sigdelset(&ending, number);
  own_signals_.push_back(number);
  signalfd(signals_, &ending, 0);
  auto set = only(number);
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return;
  watch(fd, EPOLLIN, [fd, callback = std::move(callback)] {
    signalfd_siginfo info{};
    if (read(fd, &info, sizeof info) == sizeof info) callback();
  });
  watches_.back()->owned = true;
}

void Loop::run() {
  while (!stopped_) {
    epoll_event ready[8];
    int n = epoll_wait(epoll_, ready, 8, -1);
    if (n < 0 && errno != EINTR) return;
    for (int i = 0; i < n && !stopped_; i++)
      if (auto* w = static_cast<Watch*>(ready[i].data.ptr); w->fd >= 0) w->callback();
    std::erase_if(watches_, [](auto& w) { return w->fd < 0; });
  }
}

}  // namespace coretap
