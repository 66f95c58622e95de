// Reasons of waits: what a thread waits for, by names in its kernel stack and by its system call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "coretap/fields.hpp"

namespace coretap {

enum class WaitClass { disk, memory, lock, peer, work, kernel, stopped, other };

struct WaitReason {
  std::string_view name;
  WaitClass of;
  std::string_view doc;
};

/// All reasons, ordered by class. "stopped", "traced" and "frozen" are no waits.
std::span<const WaitReason> wait_reasons();
/// The index of a reason that exists.
std::size_t wait_reason(std::string_view name);

/// A function whose name starts with `prefix`, in any frame, gives the reason; names are compared
/// without leading underscores. Lower ranks win: purposes come before mechanisms, so that a disk
/// read for a page fault is a fault, and one for reclaim is reclaim. A prefix that ends with '$' is
/// a whole name.
struct WaitRule {
  int rank;
  std::string_view reason, prefix;
};
std::span<const WaitRule> wait_rules();

/// The index of the reason that a kernel stack has; nothing: no rule knows it.
std::optional<std::size_t> reason_by_stack(const Frames& frames);
/// The same for a system call, by its name: all that is known of short waits.
std::optional<std::size_t> reason_by_call(std::string_view call);

/// Flags of a wait that the kernel keeps.
struct WaitFlags {
  bool stopped = false, traced = false, frozen = false;
  bool lock = false;      ///< it waited for a lock of the kernel
  bool memstall = false;  ///< for memory
  bool io = false;        ///< for a device
  bool kthread = false;   ///< a thread of the kernel
};
/// The index of the reason, from all witnesses: flags, the stack, then the call.
std::size_t reason_of_wait(WaitFlags flags, const Frames& frames, std::string_view call);
/// The same of flags and call as kernel programs record them (bpf/lib/sched/wait_facts.h).
std::size_t reason_of_wait(std::uint64_t facts, const Frames& frames);

/// The same from a kernel stack alone; its outermost frames have the name of the call.
std::size_t reason_of_stack(const Frames& frames);

}  // namespace coretap
