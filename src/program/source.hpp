// The source of a report's data: running kernel programs, or a recording of their data. Layers
// above access ring buffers, maps and iterators only through it.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/object_names.hpp"
#include "coretap/result.hpp"
#include "lib/core/shared.h"

namespace coretap {

struct Session;

/// Layout of an aggregate's counters in the kernel's maps (bpf/lib/aggregate/aggregate.bpf.h).
struct CounterShape {
  std::string map;             ///< its name
  std::size_t key_size = 0;    ///< bytes, including the owner
  std::size_t value_size = 0;  ///< bytes of one value, which consists of 64-bit counters
  bool keyed = false;          ///< false: values are in per-CPU slots, and the key is their index
  bool owned = false;          ///< keys end with an owner: CPUs do not cache such rows
  std::vector<std::size_t> largest = {};  ///< offsets of struct extreme in the value
  /// LiveReport::running.
  void (*running)(void* counters, std::uint64_t now_ns) = nullptr;
};

/// The counters of one aggregate.
class CounterSource {
 public:
  using Counters = std::vector<std::uint64_t>;
  using Reading = std::map<std::string, Counters>;  ///< by key

  virtual ~CounterSource() = default;
  /// Since tracing started, summed over all CPUs. `largest`: the largest values of the interval
  /// that ends now, one for each of CounterShape::largest.
  virtual Reading read(std::uint64_t now_ns, Reading& largest) = 0;
  /// False: the last reading may be incomplete, which has been reported to the session.
  virtual bool whole() const { return true; }
  /// `known` is the number of keys, `idle` those without change. If the map is filling up, removes
  /// idle keys. -> the last counters of the removed keys
  virtual Reading take_out(const std::vector<std::string>& /*idle*/, std::size_t /*known*/,
                           std::uint64_t /*now_ns*/) {
    return {};
  }
};

/// Records of the report itself begin with this number of 64 bits, as no other does.
inline constexpr std::uint64_t kReportRecord = 0xfffffffffffffff0;

/// The number of 64 bits that a record begins with: a mark of its kind, or what events begin with.
inline std::uint64_t mark_of(std::string_view record) {
  std::uint64_t mark = 0;
  memcpy(&mark, record.data(), std::min(sizeof mark, record.size()));
  return mark;
}

/// The bytes after the mark of a record of the report itself; nothing: it is another one.
inline std::optional<std::string_view> report_record(const void* record, std::size_t bytes) {
  const std::string_view all(static_cast<const char*>(record), bytes);
  if (bytes < sizeof kReportRecord || mark_of(all) != kReportRecord) return {};
  return all.substr(sizeof kReportRecord);
}

class Source {
 public:
  using TakeRecord = std::function<void(const void* record, std::size_t bytes)>;
  using VisitEntry = std::function<void(std::string_view key, std::string_view value)>;

  virtual ~Source() = default;

  /// After load, before anything else.
  virtual Result<void> open() { return {}; }
  /// After load: sets the consumer of ring buffer records.
  virtual Result<void> open_records(TakeRecord take) = 0;
  /// Readable when there are records; -1: there are no records.
  virtual int records_fd() const { return -1; }
  /// Hands over the available records. Stops after `most` time, but not before `least` records.
  /// -> whether records are left
  virtual bool take_records(std::chrono::nanoseconds most, std::uint64_t least) = 0;

  /// While a run is recorded: writes a record that the report has made. When the recording is
  /// shown, the report takes it in its place among the others, with kReportRecord before it.
  virtual void keep_record(std::string_view /*record*/) {}

  /// After load. The result must not outlive this source.
  virtual Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) = 0;

  /// Visits each entry of a hash map once, if entries are not deleted meanwhile; none if there is
  /// no such map. False: some may be left out, which has been reported to the session.
  virtual bool each_entry(MapName map, const VisitEntry& visit) = 0;
  virtual void erase(MapName /*map*/, const void* /*key*/) {}
  /// The same with keys and values of these types: visit(key, value).
  template <class Key, class Value, class Visit>
  bool each_typed_entry(MapName map, Visit visit) {
    return each_entry(map, [&](std::string_view k, std::string_view v) {
      Key key;
      Value value;
      if (k.size() < sizeof key || v.size() < sizeof value) return;  // of a recording
      memcpy(&key, k.data(), sizeof key);
      memcpy(&value, v.data(), sizeof value);
      visit(key, value);
    });
  }

  /// A stack by its id (bpf/lib/stack/stack.bpf.h); false: the kernel program could not store it.
  virtual bool stack_of(std::uint64_t id, stack& to) = 0;

  /// After load, while this process still has its capabilities: opens an iterator program.
  virtual Result<void> open_iterator(ProgramName program) = 0;
  /// The records of one iterator pass over all objects, each of `size` bytes.
  virtual Result<std::string> pass(ProgramName program, std::size_t size) = 0;

  /// Adds the counts of the kernel programs until now, by cause (enum ledger_cause).
  virtual void add_ledger(std::uint64_t* count) = 0;
};

/// The data of the kernel programs that this session runs.
std::unique_ptr<Source> live_source(Session& session);

}  // namespace coretap
