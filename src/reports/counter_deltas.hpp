// Counters by key that only grow: by how much from one reading to the next.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace coretap {

class CounterDeltas {
 public:
  using Counters = std::vector<std::uint64_t>;
  using Reading = std::map<std::string, Counters>;  ///< by the kernel's key

  /// This many counters of a key, from the first, count its events; the others come with these.
  explicit CounterDeltas(std::size_t counts = 1) : counts_(counts) {}

  /// What was added to each key that had events since the reading before.
  Reading since_last(Reading now);

  /// To a reading that left some out: as they were before.
  void complete(Reading& now) const { now.insert(before_.begin(), before_.end()); }

  std::size_t keys() const { return before_.size(); }
  bool knows(const std::string& key) const { return before_.contains(key); }
  /// Keys that nothing was added to from one reading to the next.
  const std::vector<std::string>& idle() const { return idle_; }
  /// A key is taken out of the map; what was added to it after the last reading is in the next.
  void gone(const std::string& key, const Counters& last);

 private:
  bool any_events(const Counters& delta) const;

  std::size_t counts_;
  Reading before_, late_;
  std::vector<std::string> idle_;
};

}  // namespace coretap
