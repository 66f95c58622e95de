// The run loop: signals, timers, descriptors.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

class Loop {
 public:
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Result<void> open();
  /// Calls back when the descriptor is readable or its peer has closed.
  void watch(int fd, unsigned events, std::function<void()> callback);
  /// Stops watching; call it before the descriptor is closed.
  void forget(int fd);
  /// Calls back with this period in seconds, or once after this time.
  void every(double seconds, std::function<void()> callback);
  void once(double seconds, std::function<void()> callback);
  /// Calls back after the events that are ready now: for work in steps with other events in
  /// between.
  void soon(std::function<void()> callback);

  /// Calls back for each such signal, which then does not end the loop; see block_signal().
  void on_signal(int number, std::function<void()> callback);

  /// Calls stop() after this time in seconds; ends() becomes readable then.
  void stop_after(double seconds);
  /// Makes ends() readable when this descriptor is readable.
  void ends_with(int fd);

  /// Runs until stop() or a signal that ends it. Fails if anything cannot be waited for; reports
  /// the first failure, including those of watch(), timers and signals.
  Result<void> run();
  void stop() { stopped_ = true; }
  int signals() const { return signals_.get(); }  ///< readable when a signal is pending
  int ends() const { return ends_.get(); }  ///< readable when a signal is pending or an end is due
  int signal() const { return signal_; }    ///< the signal that ended the loop; 0: none

 private:
  struct Watch {
    int fd;  ///< -1: forgotten
    Fd owned;
    std::function<void()> callback;
  };
  /// Records the first failure, from errno.
  void cannot_wait();
  int timer(double seconds, bool repeat, std::function<void()> callback);
  /// Watches a descriptor that is closed when the watch ends.
  void watch_own(Fd fd, std::function<void()> callback);
  void forget(Watch& watch);

  Fd epoll_, ends_, signals_;
  int signal_ = 0;
  bool stopped_ = false;
  Result<void> error_;
  std::vector<std::function<void()>> soon_;
  std::vector<int> own_signals_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

/// Blocks the signals that Loop handles, SIGHUP only if it is not ignored; call it before creating
/// any thread or child.
void block_signals();
/// Blocks one more signal, for Loop::on_signal(); it stays pending until then.
void block_signal(int number);
/// Drops blocked signals that have come: timeout(1) sends its signal twice.
void forget_signals();
/// After the loop: restores default actions of signals, but SIGPIPE stays ignored.
void let_signals_kill();
/// For a child, before exec: restores the state before block_signals().
void unblock_signals();

}  // namespace coretap
