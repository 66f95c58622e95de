// The clock as it is, also while the one of coretap/clock.hpp is held.
#pragma once
#include <cstdint>

namespace coretap {

/// monotonic_ns() without hold_clock().
std::uint64_t present_monotonic_ns();

}  // namespace coretap
