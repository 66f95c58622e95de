#include "reports/counter_deltas.hpp"

#include <algorithm>
#include <utility>

namespace coretap {

namespace {

void subtract(CounterDeltas::Counters& from, const CounterDeltas::Counters& what) {
  for (std::size_t i = 0; i < from.size(); i++) from[i] -= what[i];
}

void add(CounterDeltas::Counters& to, const CounterDeltas::Counters& what) {
  for (std::size_t i = 0; i < to.size(); i++) to[i] += what[i];
}

bool all_zero(const CounterDeltas::Counters& counters) {
  return std::all_of(counters.begin(), counters.end(), [](auto c) { return c == 0; });
}

}  // namespace

bool CounterDeltas::any_events(const Counters& delta) const {
  return std::any_of(delta.begin(), delta.begin() + static_cast<std::ptrdiff_t>(counts_),
                     [](auto c) { return c != 0; });
}

CounterDeltas::Reading CounterDeltas::since_last(Reading now) {
  Reading grown = std::exchange(late_, {});
  idle_.clear();
  // Both readings are in the order of their keys: no search for each of many connections or files.
  auto known = before_.begin(), place = grown.begin();
  for (auto& [key, counters] : now) {
    while (known != before_.end() && known->first < key) ++known;
    const bool fresh = known == before_.end() || known->first != key;
    auto delta = counters;
    if (!fresh) subtract(delta, known->second);
    if (!any_events(delta)) {
      // A new key may have been added just now, with its event in the next reading: not idle.
      if (!fresh && all_zero(delta)) idle_.push_back(key);
      // Read between an event's count and its other counters: reports these with the next event.
      counters = fresh ? Counters(counters.size()) : std::move(known->second);
      continue;
    }
    while (place != grown.end() && place->first < key) ++place;
    if (place == grown.end() || place->first != key)
      grown.emplace_hint(place, key, std::move(delta));
    else
      add(place->second, delta);
  }
  before_ = std::move(now);
  return grown;
}

void CounterDeltas::gone(const std::string& key, const Counters& last) {
  auto known = before_.find(key);
  if (known == before_.end()) return;
  auto delta = last;
  subtract(delta, known->second);
  before_.erase(known);
  if (any_events(delta)) late_.emplace(key, std::move(delta));
}

}  // namespace coretap
