// Counters by key that only grow: their growth from one reading to the next.
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

  /// The first `counts` counters of a key count its events; the others change with these.
  explicit CounterDeltas(std::size_t counts = 1) : counts_(counts) {}

  /// The growth of each key that had events since the previous reading.
  Reading since_last(Reading now);

  /// Completes a partial reading with the previous values.
  void complete(Reading& now) const { now.insert(before_.begin(), before_.end()); }

  std::size_t keys() const { return before_.size(); }
  bool knows(const std::string& key) const { return before_.contains(key); }
  /// Keys without growth from one reading to the next.
  const std::vector<std::string>& idle() const { return idle_; }
  /// A key was removed from the map; its growth after the last reading is in the next result.
  void gone(const std::string& key, const Counters& last);

 private:
  bool any_events(const Counters& delta) const;

  std::size_t counts_;
  Reading before_, late_;
  std::vector<std::string> idle_;
};

}  // namespace coretap
