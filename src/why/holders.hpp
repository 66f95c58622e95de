// The tasks that hold what the target waits for, from the lines of the tool that follows them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "why/facts.hpp"

namespace coretap::why {

class Holders {
 public:
  explicit Holders(const Target& target) : target_(target) {}

  /// A line of JSON.
  void take(std::string_view line);
  /// Adds the counters "held.KIND_us", scaled to the run of the facts, and the settings
  /// "holder.KIND" and "holder.KIND.waits": the holder's own wait. Kinds: futex, lock, mmap_lock,
  /// file_lock.
  void add_to(Facts& facts, double seconds) const;

 private:
  struct Held {
    std::uint64_t ns = 0;
    std::map<std::string, std::uint64_t> holders = {}, their_waits = {};
  };

  const Target& target_;
  std::map<std::string, Held, std::less<>> held_;
};

}  // namespace coretap::why
