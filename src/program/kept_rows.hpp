// Rows of a table that each CPU keeps at hand: KEPT() of bpf/lib/aggregate.bpf.h.
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
  /// Tells the kernel program whether it may keep rows, which have no owners; before it is loaded.
  static void configure(Session& session, std::string_view table, bool owners);

  /// Nothing where the program keeps none, or may not.
  Result<void> open(Session& session, std::string_view table, std::size_t key_size,
                    std::size_t value_size);

  /// Each row of each CPU: its key, and the value of this CPU.
  void each(const std::function<void(const std::string& key, const char* value)>& visit);

  bool is_open() const { return slots_.is_open(); }
  /// A CPU keeps a row of this key, as far as has been seen.
  bool has(const std::string& key) const { return keys_.contains(key); }

 private:
  const char* row(std::size_t number) const;
  bool is_kept(std::size_t number) const;

  CpuSlots slots_;
  std::size_t key_size_ = 0, value_size_ = 0, stride_ = 0, per_cpu_ = 0;
  std::vector<bool> known_;  ///< rows whose key has been seen
  std::set<std::string> keys_;
};

}  // namespace coretap
