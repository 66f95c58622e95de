// Readings of maps as differences to the reading before: counters by key, most of which do not
// change between two readings.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coretap::record {

/// The rows of one map, by key: values of 64-bit words.
class Changes {
 public:
  using Words = std::vector<std::uint64_t>;
  using Rows = std::map<std::string, Words>;

  /// `key_bytes`, `words`: of each row.
  Changes(std::size_t key_bytes, std::size_t words) : key_bytes_(key_bytes), words_(words) {}

  /// The rows become `now`. -> what changed
  std::string to(const Rows& now);
  /// Does what another object's to() returned; false: the bytes are not of that form, or there
  /// would be more rows than may be.
  bool take(std::string_view bytes);
  const Rows& rows() const { return rows_; }
  void erase(const std::string& key) { rows_.erase(key); }

  /// Rows alone, without those before.
  static std::string whole(const Rows& rows, std::size_t key_bytes, std::size_t words) {
    return Changes(key_bytes, words).to(rows);
  }

 private:
  std::size_t key_bytes_, words_;
  Rows rows_;
};

}  // namespace coretap::record
