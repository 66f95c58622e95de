// Rows of a table that each CPU caches: KEPT() of bpf/lib/aggregate/aggregate.bpf.h.
#pragma once
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "program/session.hpp"

namespace coretap {

class KeptRows {
 public:
  /// Before load: sets whether the kernel program may cache rows; rows with owners are not cached.
  static void configure(Session& session, std::string_view table, bool owners);

  /// Does nothing if the program has no such cache.
  Result<void> open(Session& session, std::string_view table, std::size_t key_size,
                    std::size_t value_size);

  /// Visits each cached row of each CPU: its key, and the value of that CPU.
  void each(const std::function<void(const std::string& key, const char* value)>& visit);

  bool is_open() const { return slots_.is_open(); }
  /// True if a CPU caches a row with this key, as of the last each().
  bool has(const std::string& key) const { return keys_.contains(key); }

 private:
  const char* row(std::size_t number) const;

  CpuSlots slots_;
  std::size_t key_size_ = 0, value_size_ = 0, stride_ = 0, per_cpu_ = 0;
  std::vector<bool> known_;  ///< rows whose key has been stored
  std::set<std::string> keys_;
};

}  // namespace coretap
