// The data of running kernel programs.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "program/iterator.hpp"
#include "program/session.hpp"
#include "program/source.hpp"

struct ring_buffer;

namespace coretap {

/// The counters of a value as the kernel copies it (value_bytes() in program/maps.hpp), summed over
/// all CPUs if it has one for each, including operations that are in progress.
CounterSource::Counters sum_of_cpus(const CounterShape& shape, const char* value, std::size_t cpus,
                                    std::uint64_t now_ns);
/// The largest values of this interval, one for each of CounterShape::largest.
CounterSource::Counters largest_of_cpus(const CounterShape& shape, const char* value,
                                        std::size_t cpus, std::uint32_t interval);

class LiveSource : public Source {
 public:
  explicit LiveSource(Session& session) : s_(session) {}

  Result<void> open() override;
  Result<void> open_records(TakeRecord take) override;
  int records_fd() const override;
  bool take_records(std::chrono::nanoseconds most, std::uint64_t least) override;
  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override;
  bool each_entry(std::string_view map, const VisitEntry& visit) override;
  void erase(std::string_view map, const void* key) override;
  bool stack_of(std::uint64_t id, stack& to) override;
  Result<void> open_iterator(std::string_view program) override;
  Result<std::string> pass(std::string_view program, std::size_t size) override;
  void add_ledger(std::uint64_t* count) override;

 private:
  struct RingDeleter {
    void operator()(ring_buffer* ring) const;
  };

  Session& s_;
  TakeRecord take_;
  std::uint64_t taken_ = 0, take_least_ = 0, take_until_ = 0;
  std::unique_ptr<ring_buffer, RingDeleter> ring_;
  std::map<std::string, Iterator, std::less<>> iterators_;
  CpuSlots ledger_;
};

}  // namespace coretap
