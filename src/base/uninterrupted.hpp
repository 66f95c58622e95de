// Restarting of system calls that signals interrupt.
#pragma once
#include <cerrno>

namespace coretap {

/// Repeats the call while it fails with EINTR; -> its result.
template <class Call>
auto uninterrupted(Call call) {
  while (true)
    if (auto result = call(); result >= 0 || errno != EINTR) return result;
}

}  // namespace coretap
