#include "reports/aggregate_rows.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

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

std::vector<std::string> AggregateRows::since_last(Reading now, const Reading& largest,
                                                   const FieldContext& context) {
  std::vector<std::string> rows;
  for (auto& [key, delta] : deltas_.since_last(std::move(now))) {
    events_ = std::accumulate(delta.begin(),
                              delta.begin() + static_cast<std::ptrdiff_t>(report_.event_counters),
                              events_);
    auto row = row_of(key, delta);
    if (auto found = largest.find(key); found != largest.end())
      for (std::size_t i = 0; i < found->second.size(); i++)
        memcpy(row.data() + report_.value_at + report_.largest[i], &found->second[i], 8);
    rows.push_back(std::move(row));
  }
  sort(rows, context);
  return rows;
}

std::string AggregateRows::row_of(const std::string& key, const Counters& counters) const {
  std::string row(report_.row_size(), '\0');
  memcpy(row.data(), key.data(), std::min(key.size(), report_.key_size));
  if (key.size() > report_.key_size)
    memcpy(row.data() + report_.owner_at(), key.data() + report_.value_at, sizeof(task_id));
  memcpy(row.data() + report_.value_at, counters.data(), report_.value_size);
  return row;
}

void AggregateRows::add_up(std::string& to, const std::string& from) const {
  for (std::size_t at = 0; at < report_.value_size; at += 8) {
    std::uint64_t a = 0, b = 0;
    memcpy(&a, to.data() + report_.value_at + at, 8);
    memcpy(&b, from.data() + report_.value_at + at, 8);
    bool largest =
        std::find(report_.largest.begin(), report_.largest.end(), at) != report_.largest.end();
    a = largest ? std::max(a, b) : a + b;
    memcpy(to.data() + report_.value_at + at, &a, 8);
  }
}

template <class Same>
void AggregateRows::merge(std::vector<std::string>& rows, const FieldContext& context,
                          Same&& same) const {
  std::map<decltype(same(rows[0])), std::size_t> places;
  std::vector<std::string> merged;
  for (auto& row : rows) {
    auto [found, first] = places.try_emplace(same(row), merged.size());
    if (first)
      merged.push_back(std::move(row));
    else
      add_up(merged[found->second], row);
  }
  rows = std::move(merged);
  sort(rows, context);
}

void AggregateRows::merge(std::vector<std::string>& rows, const FieldContext& context) const {
  if (!report_.one_row_for) return;
  merge(rows, context, [&](auto& row) { return report_.one_row_for(row.data(), context); });
}

void AggregateRows::merge_equal(std::vector<std::string>& rows, const FieldContext& context) const {
  merge(rows, context, [&](auto& row) {
    return row.substr(0, report_.key_size) + row.substr(report_.owner_at());
  });
}

void AggregateRows::merge_by(std::vector<std::string>& rows, const std::vector<Field>& keys,
                             const FieldContext& context) const {
  if (keys.empty()) return;
  merge(rows, context, [&](auto& row) {
    std::vector<Value> values;
    values.reserve(keys.size());
    for (auto& f : keys) values.push_back(f.read(row.data(), context));
    return values;
  });
}

void AggregateRows::sort(std::vector<std::string>& rows, const FieldContext& context) const {
  if (sort_.empty()) return;
  // Reads each row's fields once: comparing costs less than reading.
  std::vector<std::pair<std::vector<Value>, std::string>> all;
  all.reserve(rows.size());
  for (auto& row : rows) {
    std::vector<Value> values;
    values.reserve(sort_.size());
    for (auto* f : sort_) values.push_back(f->read(row.data(), context));
    all.emplace_back(std::move(values), std::move(row));
  }
  auto precedes = [&](auto& left, auto& right) {
    auto& a = reversed_ ? right.first : left.first;
    auto& b = reversed_ ? left.first : right.first;
    auto [one, other] = std::ranges::mismatch(a, b);
    if (one == a.end()) return false;
    // Names in alphabetical order, then rows without a name; numbers with the largest first.
    const bool named = std::holds_alternative<std::string>(*one);
    if (named != std::holds_alternative<std::string>(*other)) return named;
    return named ? *one < *other : *one > *other;
  };
  std::ranges::stable_sort(all, precedes);
  std::ranges::transform(all, rows.begin(), [](auto& one) { return std::move(one.second); });
}

}  // namespace coretap
