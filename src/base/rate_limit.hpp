// Limits events per second: a token bucket.
#pragma once
#include <algorithm>
#include <cstdint>

namespace coretap {

/// Holds the tokens of one second and is full at the start: N per second in the long run, and at
/// most 2 N in any second.
class RateLimit {
 public:
  explicit RateLimit(std::uint64_t per_second) : rate_(per_second), credit_(kSecond * per_second) {}

  /// Takes a token; false if there is none. Times of several CPUs may be out of order: a time
  /// before the last one adds no tokens.
  bool take(std::uint64_t now_ns) {
    if (now_ns > last_ns_) {
      credit_ = std::min(credit_ + std::min(now_ns - last_ns_, kSecond) * rate_, kSecond * rate_);
      last_ns_ = now_ns;
    }
    if (credit_ < kSecond) return false;
    credit_ -= kSecond;
    return true;
  }

  static constexpr std::uint64_t kMost = 1'000'000'000;  ///< per second; larger rates overflow

 private:
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  std::uint64_t rate_;
  std::uint64_t credit_;  ///< in billionths of a token, so that nothing is rounded
  std::uint64_t last_ns_ = 0;
};

}  // namespace coretap
