#include "record/changes.hpp"

#include <utility>

#include <protozero/varint.hpp>

#include "base/recall.hpp"

namespace coretap::record {

namespace {

constexpr std::size_t kMostRows = 4 << 20;

/// Runs of equal words are one number; each other word is a difference.
void put_words(std::string& to, const Changes::Words& before, const Changes::Words& now) {
  for (std::size_t i = 0; i < now.size();) {
    auto same = i;
    while (same < now.size() && now[same] == before[same]) same++;
    put_varint(to, same - i);
    if (same < now.size())
      put_varint(to,
                 protozero::encode_zigzag64(static_cast<std::int64_t>(now[same] - before[same])));
    i = same + 1;
  }
}

bool take_words(std::string_view& bytes, Changes::Words& words) {
  for (std::size_t i = 0; i < words.size(); i++) {
    std::uint64_t same = 0, difference = 0;
    if (!take_varint(bytes, same) || same > words.size() - i) return false;
    i += same;
    if (i == words.size()) return true;
    if (!take_varint(bytes, difference)) return false;
    words[i] += static_cast<std::uint64_t>(protozero::decode_zigzag64(difference));
  }
  return true;
}

}  // namespace

// Number of removed keys, these keys; then each changed row: its key and words.
std::string Changes::to(const Rows& now) {
  std::string bytes, removed;
  std::uint64_t count = 0;
  for (auto row = rows_.begin(); row != rows_.end();) {
    if (now.contains(row->first)) {
      ++row;
      continue;
    }
    removed += row->first;
    count++;
    row = rows_.erase(row);
  }
  put_varint(bytes, count);
  bytes += removed;
  for (auto& [key, words] : now) {
    auto [known, fresh] = rows_.try_emplace(key, Words(words_));
    if (!fresh && known->second == words) continue;
    bytes += key;
    put_words(bytes, known->second, words);
    known->second = words;
  }
  return bytes;
}

bool Changes::take(std::string_view bytes) {
  std::uint64_t removed = 0;
  if (!take_varint(bytes, removed)) return false;
  auto take_key = [&](std::string& key) {
    if (bytes.size() < key_bytes_) return false;
    key.assign(bytes.substr(0, key_bytes_));
    bytes.remove_prefix(key_bytes_);
    return true;
  };
  std::string key;
  for (; removed; removed--) {
    if (!key_bytes_ || !take_key(key)) return false;
    rows_.erase(key);
  }
  while (!bytes.empty()) {
    const auto before = bytes.size();
    if (!take_key(key)) return false;
    auto [row, fresh] = rows_.try_emplace(key, Words(words_));
    if (fresh && rows_.size() > kMostRows) return false;
    if (!take_words(bytes, row->second)) return false;
    if (bytes.size() == before) return false;  // rows without keys and words have no end
  }
  return true;
}

}  // namespace coretap::record
