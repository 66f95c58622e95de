// System calls that a signal may interrupt.
#pragma once
#include <cerrno>

namespace coretap {

/// Calls until it is not interrupted by a signal; -> what it returns then.
template <class Call>
auto uninterrupted(Call call) {
  while (true)
    if (auto result = call(); result >= 0 || errno != EINTR) return result;
}

}  // namespace coretap
