// How much is read from processes within a second: each could show ever new code.
#pragma once
#include <chrono>
#include <cstddef>

namespace coretap::runtimes {

class ReadBudget {
 public:
  explicit ReadBudget(std::size_t bytes) : bytes_(bytes) {}

  bool take(std::size_t bytes) {
    const auto now = std::chrono::steady_clock::now();
    if (now - since_ >= std::chrono::seconds(1)) {
      since_ = now;
      left_ = bytes_;
    }
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  std::size_t bytes_, left_ = bytes_;
  std::chrono::steady_clock::time_point since_{};  // with this much left
};

}  // namespace coretap::runtimes
