// The one run loop: signals, timers, descriptors.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Result<void> open();
  /// Calls back when the descriptor can be read or its other end has gone.
  void watch(int fd, unsigned events, std::function<void()> callback);
  /// No longer; to be called before the descriptor is closed.
  void forget(int fd);
  /// At this period in seconds, or once.
  void every(double seconds, std::function<void()> callback);
  void once(double seconds, std::function<void()> callback);

  /// Each time this signal comes, which then does not end the loop; see block_signal().
  void on_signal(int number, std::function<void()> callback);

  /// Runs until stop() or a signal that asks to end.
  void run();
  void stop() { stopped_ = true; }
  int signals() const { return signals_; }  ///< can be read when a signal waits
  int signal() const { return signal_; }    ///< the one that ended it; 0: none

 private:
  struct Watch {
    int fd;  ///< -1: forgotten
    bool owned;
    std::function<void()> callback;
  };
  void timer(double seconds, bool repeat, std::function<void()> callback);
  void forget(Watch& watch);

  int epoll_ = -1, signals_ = -1, signal_ = 0;
  bool stopped_ = false;
  std::vector<int> own_signals_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

/// Blocks the signals that Loop handles; call before any thread or child is made.
void block_signals();
/// The same for one that Loop::on_signal() will see; until then it waits.
void block_signal(int number);
/// After the loop: signals do what they do by default, but a closed pipe is still no death.
void let_signals_kill();
/// For a child, before exec.
void unblock_signals();

}  // namespace coretap
