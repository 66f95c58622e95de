// Events of libevent that call functions.
#pragma once
#include <event2/event.h>

#include <ctime>
#include <functional>
#include <memory>
#include <utility>

namespace coretap::serve {

/// Calls a function when a descriptor is readable or a time is over, until it is destroyed; the
/// function itself may do that.
class Event {
 public:
  Event() = default;
  static Event readable(event_base* base, int fd, std::function<void()> call) {
    return {base, fd, EV_READ | EV_PERSIST, nullptr, std::move(call)};
  }
  static Event after(event_base* base, double seconds, std::function<void()> call,
                     bool repeat = false) {
    const auto whole = static_cast<time_t>(seconds);
    const timeval wait{whole,
                       static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * 1e6)};
    return {base, -1, static_cast<short>(repeat ? EV_PERSIST : 0), &wait, std::move(call)};
  }

  /// False: there is none, or there was no memory for it.
  explicit operator bool() const { return static_cast<bool>(event_); }

 private:
  using Call = std::function<void()>;

  Event(event_base* base, int fd, short what, const timeval* wait, Call call)
      : call_(std::make_unique<Call>(std::move(call))),
        event_(event_new(base, fd, what, run, call_.get()), event_free) {
    if (event_ && event_add(event_.get(), wait) != 0) event_.reset();
  }
  static void run(evutil_socket_t, short, void* call) {
    auto copy = *static_cast<Call*>(call);  // the call may destroy it
    copy();
  }

  std::unique_ptr<Call> call_;
  std::unique_ptr<event, decltype(&event_free)> event_{nullptr, event_free};
};

}  // namespace coretap::serve
