// Names of the stacks that a kernel program keeps (bpf/lib/stack.bpf.h), looked up once each.
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

/// The frames of a kernel stack; the user gets one note why they have no names, if they have none.
Frames kernel_frames(Session& s, Stacks& stacks, const stack& found,
                     std::vector<FramePlace>* places = nullptr);

class StackNames {
 public:
  struct Named {
    Frames frames;                        ///< leaf first
    std::vector<FramePlace> places = {};  ///< of these frames; empty: not kept
    std::string_view cut = {};            ///< why a user stack ends too early; empty: it does not
    std::uint32_t guessed = 0;            ///< frames that only a frame pointer led to
    bool missed = false;                  ///< the kernel program could not keep it
    std::uint64_t asked = 0;              ///< for which report, at last
  };

  /// Before load. `user`: there are user stacks to be walked.
  void configure(Session& s, Stacks::Style style, bool user);
  /// For Reporter's functions of these names.
  static void size_maps(Session& s) { unwind::size_maps(s); }
  Result<void> ready(Session& s) { return walker_ ? walker_->ready(s) : Result<void>(); }
  double poll_seconds() const { return walker_ ? walker_->poll_seconds() : 0; }
  void poll(Session& s) {
    if (walker_) walker_->poll(s);
  }
  std::vector<int> wakes() const { return walker_ ? walker_->wakes() : std::vector<int>(); }

  /// Is this record news about user stacks, for us alone?
  bool take(Session& s, const void* record, std::size_t size);

  /// After a report of several: where many stacks have names, those of older reports lose them.
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
