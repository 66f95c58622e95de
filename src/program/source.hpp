// Where a report's data come from: kernel programs that run, or what was kept of them. What is
// above this layer reads no ring buffer, no map and no iterator.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "lib/shared.h"

namespace coretap {

struct Session;

/// How the counters of an aggregate lie in the kernel's maps (bpf/lib/aggregate.bpf.h).
struct CounterShape {
  std::string map;             ///< its name
  std::size_t key_size = 0;    ///< bytes, with the owner's
  std::size_t value_size = 0;  ///< bytes of one value, all of them counters of 64 bits
  bool keyed = false;          ///< else values lie in per-CPU slots, the key being their number
  bool owned = false;          ///< keys end in an owner: no CPU keeps such rows at hand
  std::vector<std::size_t> largest = {};  ///< offsets of struct extreme in the value
  /// LiveReport::running.
  void (*running)(std::uint64_t* counters, std::uint64_t now_ns) = nullptr;
};

/// The counters of one aggregate.
class CounterSource {
 public:
  using Counters = std::vector<std::uint64_t>;
  using Reading = std::map<std::string, Counters>;  ///< by key

  virtual ~CounterSource() = default;
  /// Since tracing began, of all CPUs together. `largest`: the largest values of the interval that
  /// ends now, one for each of CounterShape::largest.
  virtual Reading read(std::uint64_t now_ns, Reading& largest) = 0;
  /// False: the last reading may have left some out, which the session has been told.
  virtual bool whole() const { return true; }
  /// Of `known` keys these are idle: where there is little room left, takes them out. -> the last
  /// counters of those that are gone
  virtual Reading take_out(const std::vector<std::string>& /*idle*/, std::size_t /*known*/,
                           std::uint64_t /*now_ns*/) {
    return {};
  }
};

class Source {
 public:
  using TakeRecord = std::function<void(const void* record, std::size_t bytes)>;
  using VisitEntry = std::function<void(const char* key, std::string_view value)>;

  virtual ~Source() = default;

  /// After load, before anything else.
  virtual Result<void> open() { return {}; }
  /// After load: who takes records of the ring buffer.
  virtual Result<void> open_records(TakeRecord take) = 0;
  /// Can be read when there are records; -1: none ever come.
  virtual int records_fd() const { return -1; }
  /// Hands over the records that are there: where that would take longer than `most`, some of them,
  /// and not fewer than `least`. -> whether others are left
  virtual bool take_records(std::chrono::nanoseconds most, std::uint64_t least) = 0;

  /// After load. Lives no longer than this source.
  virtual Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) = 0;

  /// Each entry of a hash map whose entries are not deleted meanwhile, once; none where there is no
  /// such map. False: some may be left out, which the session has been told.
  virtual bool each_entry(std::string_view map, const VisitEntry& visit) = 0;
  virtual void erase(std::string_view /*map*/, const void* /*key*/) {}

  /// A stack by its id (bpf/lib/stack.bpf.h); false: the kernel program could not keep it.
  virtual bool stack_of(std::uint64_t id, stack& to) = 0;

  /// After load, while this process has its rights: an iterator program.
  virtual Result<void> open_iterator(std::string_view program) = 0;
  /// The records of one pass of it over all objects, each of `size` bytes.
  virtual Result<std::string> pass(std::string_view program, std::size_t size) = 0;

  /// Adds what kernel programs have counted by cause until now (enum ledger_cause).
  virtual void add_ledger(std::uint64_t* count) = 0;
};

/// The data of the kernel programs that this session runs.
std::unique_ptr<Source> live_source(Session& session);

}  // namespace coretap
