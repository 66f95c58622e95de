#include "reports/snapshot_rows.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

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
  using Ranked = std::pair<Value, const void*>;
  std::vector<Ranked> all;
  all.reserve(rows.records.size());
  for (auto* record : rows.records) all.emplace_back(field.read(record, context), record);
  std::ranges::stable_sort(all, std::greater<>(), &Ranked::first);
  std::ranges::transform(all, rows.records.begin(), &Ranked::second);
}

}  // namespace coretap
