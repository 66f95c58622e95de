#include "reports/aggregate_rows.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace coretap {

void AggregateRows::order(std::string_view sort) {
  sort_.clear();
  while (!sort.empty()) {
    auto key = sort.substr(0, sort.find(','));
    for (auto& f : report_.fields)
      if (f.key == key) sort_.push_back(&f);
    sort.remove_prefix(std::min(sort.size(), key.size() + 1));
  }
}

std::vector<std::string> AggregateRows::since_last(Reading now, const FieldContext& context) {
  std::vector<std::string> rows;
  for (auto& [key, delta] : deltas_.since_last(std::move(now))) {
    events_ = std::accumulate(delta.begin(),
                              delta.begin() + static_cast<std::ptrdiff_t>(report_.event_counters),
                              events_);
    std::string row(report_.value_at + report_.value_size, '\0');
    memcpy(row.data(), key.data(), key.size());
    memcpy(row.data() + report_.value_at, delta.data(), report_.value_size);
    rows.push_back(std::move(row));
  }
  sort(rows, context);
  return rows;
}

void AggregateRows::sort(std::vector<std::string>& rows, const FieldContext& context) const {
  if (sort_.empty()) return;
  std::stable_sort(rows.begin(), rows.end(), [&](auto& a, auto& b) {
    for (auto* f : sort_) {
      auto of_a = f->read(a.data(), context), of_b = f->read(b.data(), context);
      if (of_a != of_b) return reversed_ ? of_a < of_b : of_a > of_b;
    }
    return false;
  });
}

}  // namespace coretap
