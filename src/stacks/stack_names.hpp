// Names of the stacks that a kernel program stores (bpf/lib/stack/stack.bpf.h), each looked up
// once.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "program/session.hpp"
#include "stacks/stacks.hpp"
#include "unwind/table_walker.hpp"
#include "unwind/walker.hpp"

namespace coretap {

/// The frames of a kernel stack; if they have no names, the user gets one note with the reason.
Frames kernel_frames(Session& s, Stacks& stacks, const stack& found,
                     std::vector<FramePlace>* places = nullptr);

/// Before load: sets the code ranges of interrupt handling (bpf/lib/stack/waker.bpf.h).
void tell_interrupts(Session& s);

class StackNames {
 public:
  struct Named {
    Frames frames;                        ///< leaf first
    std::vector<FramePlace> places = {};  ///< of these frames; empty: not stored
    std::string_view cut = {};            ///< why a user stack is truncated; empty: it is complete
    std::uint32_t guessed = 0;            ///< number of frames that only a frame pointer led to
    bool missed = false;                  ///< the kernel program could not store it
    std::uint64_t asked = 0;              ///< the last report that used it
  };

  /// Before load. `user`: there are user stacks to unwind.
  void configure(Session& s, Stacks::Style style, bool user);
  /// For the functions of these names in Reporter.
  static void size_maps(Session& s) { unwind::size_maps(s); }
  Result<void> ready(Session& s) { return walker_ ? walker_->ready(s) : Result<void>(); }
  double poll_seconds() const { return walker_ ? walker_->poll_seconds() : 0; }
  void poll(Session& s) {
    if (walker_) walker_->poll(s);
  }
  std::vector<int> wakes() const { return walker_ ? walker_->wakes() : std::vector<int>(); }

  /// Handles records about user stacks; false: it is another record.
  bool take(Session& s, const void* record, std::size_t size);

  /// After a report: if many stacks have names, drops those that only older reports used.
  void next_report();

  const Named& kernel(Session& s, std::uint64_t id) { return find(s, id, 0, true); }
  const Named& user(Session& s, std::uint64_t id, pid_t tgid) { return find(s, id, tgid, false); }

 private:
  const Named& find(Session& s, std::uint64_t id, pid_t tgid, bool kernel);
  void meet(Session& s, const stack_process& process);

  std::unique_ptr<Stacks> stacks_;
  std::unique_ptr<StackWalker> walker_;
  std::map<std::pair<std::uint64_t, pid_t>, Named> known_;
  std::uint64_t reports_ = 0;
};

}  // namespace coretap
