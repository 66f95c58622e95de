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
  /// After what is ready now: for work in steps, between which all else has its turn.
  void soon(std::function<void()> callback);

  /// Each time this signal comes, which then does not end the loop; see block_signal().
  void on_signal(int number, std::function<void()> callback);

  /// stop() after this time in seconds; ends() can be read then.
  void stop_after(double seconds);
  /// An end is due when this descriptor can be read.
  void ends_with(int fd);

  /// Runs until stop() or a signal that asks to end. Fails if something cannot be waited for: the
  /// first failure of watch(), timers and signals, too.
  Result<void> run();
  void stop() { stopped_ = true; }
  int signals() const { return signals_; }  ///< can be read when a signal waits
  int ends() const { return ends_; }        ///< can be read when a signal waits or an end is due
  int signal() const { return signal_; }    ///< the one that ended it; 0: none

 private:
  struct Watch {
    int fd;  ///< -1: forgotten
    bool owned;
    std::function<void()> callback;
  };
  /// Keeps the first failure, by errno.
  void cannot_wait();
  int timer(double seconds, bool repeat, std::function<void()> callback);
  void forget(Watch& watch);

  int epoll_ = -1, ends_ = -1, signals_ = -1, signal_ = 0;
  bool stopped_ = false;
  Result<void> error_;
  std::vector<std::function<void()>> soon_;
  std::vector<int> own_signals_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

/// Blocks the signals that Loop handles, SIGHUP only if it is not ignored; call before any thread
/// or child is made.
void block_signals();
/// The same for one that Loop::on_signal() will see; until then it waits.
void block_signal(int number);
/// After the loop: signals do what they do by default, but a closed pipe does not kill.
void let_signals_kill();
/// For a child, before exec: as all was before block_signals().
void unblock_signals();

}  // namespace coretap
