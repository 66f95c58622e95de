#include "reports/snapshot_rows.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace coretap {

SnapshotReport::Reading records_of(std::string bytes, std::size_t size) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  SnapshotReport::Reading all{owner, {}};
  for (std::size_t at = 0; at + size <= owner->size(); at += size)
    all.records.push_back(owner->data() + at);
  return all;
}

SnapshotReport::Reading groups_of(const SnapshotReport::Reading& records, std::size_t key_size) {
  std::unordered_map<std::string_view, std::size_t> known;
  std::vector<std::string_view> keys;
  std::vector<std::uint64_t> counts;
  for (auto* record : records.records) {
    const std::string_view key(static_cast<const char*>(record), key_size);
    auto [at, is_new] = known.try_emplace(key, keys.size());
    if (is_new) {
      keys.push_back(key);
      counts.push_back(0);
    }
    counts[at->second]++;
  }
  const auto count_at = (key_size + 7) / 8 * 8;
  const auto size = count_at + sizeof counts[0];
  std::string rows(keys.size() * size, '\0');
  for (std::size_t i = 0; i < keys.size(); i++) {
    memcpy(rows.data() + i * size, keys[i].data(), key_size);
    memcpy(rows.data() + i * size + count_at, &counts[i], sizeof counts[i]);
  }
  return records_of(std::move(rows), size);
}

void sort_by(SnapshotReport::Reading& rows, const Field& field, const FieldContext& context) {
  std::vector<Value> values;
  values.reserve(rows.records.size());
  for (auto* record : rows.records) values.push_back(field.read(record, context));
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto one, auto other) { return values[one] > values[other]; });
  std::vector<const void*> sorted;
  sorted.reserve(order.size());
  for (auto i : order) sorted.push_back(rows.records[i]);
  rows.records = std::move(sorted);
}

}  // namespace coretap
