#include "program/live_source.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "program/kept_rows.hpp"
#include "program/links.hpp"
#include "program/maps.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

CounterSource::Counters sum_of_cpus(const CounterShape& shape, const char* value, std::size_t cpus,
                                    std::uint64_t now_ns) {
  CounterSource::Counters sum(shape.value_size / 8);
  for (std::size_t cpu = 0; cpu < cpus; cpu++, value += shape.value_size) {
    for (std::size_t i = 0; i < sum.size(); i++) {
      std::uint64_t one = 0;
      memcpy(&one, value + i * sizeof one, sizeof one);
      sum[i] += one;
    }
  }
  for (auto at : shape.largest) memset(sum.data() + at / 8, 0, sizeof(extreme));
  if (shape.running) shape.running(sum.data(), now_ns);
  return sum;
}

CounterSource::Counters largest_of_cpus(const CounterShape& shape, const char* value,
                                        std::size_t cpus, std::uint32_t interval) {
  constexpr auto kMost = (std::uint64_t{1} << EXTREME_BITS) - 1;
  CounterSource::Counters all(shape.largest.size());
  for (std::size_t cpu = 0; cpu < cpus; cpu++, value += shape.value_size)
    for (std::size_t i = 0; i < all.size(); i++) {
      extreme e;
      memcpy(&e, value + shape.largest[i], sizeof e);
      auto slot = std::uint64_t{e.slots[interval & 1]};
      if (slot >> EXTREME_BITS == static_cast<std::uint16_t>(interval))
        all[i] = std::max(all[i], slot & kMost);
    }
  return all;
}

namespace {

constexpr std::uint64_t kLook = 16;  // records between two checks of the clock
constexpr std::size_t kMany = 1024;  // keys; removing idle ones is not worthwhile below

using Counters = CounterSource::Counters;

/// Values in per-CPU slots: one, or one for each index.
class SlotCounters : public CounterSource {
 public:
  SlotCounters(Session& s, CounterShape shape) : s_(s), shape_(std::move(shape)) {}

  Result<void> open(bpf_map* map) { return slots_.open(map); }

  Reading read(std::uint64_t now_ns, Reading& largest) override {
    Reading all;
    const auto interval = interval_++;
    if (!shape_.largest.empty()) set_live(s_, "extreme_interval", &interval_, sizeof interval_);
    const auto counters = shape_.value_size / 8;
    Counters sum(slots_.size() / 8);
    slots_.sum(sum.data(), sum.size());
    for (std::uint32_t number = 0; (number + 1) * counters <= sum.size(); number++) {
      auto first = sum.begin() + static_cast<std::ptrdiff_t>(number * counters);
      auto last = first + static_cast<std::ptrdiff_t>(counters);
      for (auto at : shape_.largest)
        std::fill_n(first + static_cast<std::ptrdiff_t>(at / 8), sizeof(extreme) / 8, 0);
      if (shape_.running) shape_.running(&*first, now_ns);
      if (std::count(first, last, 0) == last - first) continue;
      std::string key(shape_.key_size, '\0');
      memcpy(key.data(), &number, std::min(sizeof number, key.size()));
      if (!shape_.largest.empty()) largest.emplace(key, largest_of(number, interval));
      all.emplace(std::move(key), Counters(first, last));
    }
    return all;
  }

 private:
  Counters largest_of(std::uint32_t number, std::uint32_t interval) const {
    Counters most(shape_.largest.size());
    for (std::uint32_t cpu = 0; cpu < slots_.cpus(); cpu++) {
      auto of_cpu =
          largest_of_cpus(shape_, slots_.of_cpu(cpu) + number * shape_.value_size, 1, interval);
      std::ranges::transform(of_cpu, most, most.begin(),
                             [](auto a, auto b) { return std::max(a, b); });
    }
    return most;
  }

  Session& s_;
  CounterShape shape_;
  CpuSlots slots_;
  std::uint32_t interval_ = 0;
};

/// Values by key, in a hash map and in rows that each CPU caches.
class KeyedCounters : public CounterSource {
 public:
  KeyedCounters(Session& s, CounterShape shape) : s_(s), shape_(std::move(shape)) {}

  Result<void> open(bpf_map* map) {
    map_ = map;
    if (shape_.owned || s_.config.rows.max_keys) return {};
    return kept_.open(s_, shape_.map, shape_.key_size, shape_.value_size);
  }

  Reading read(std::uint64_t now_ns, Reading& largest) override {
    Reading all;
    const auto interval = interval_++;
    if (!shape_.largest.empty()) set_live(s_, "extreme_interval", &interval_, sizeof interval_);
    whole_ = s_.complete(
        each_entry(map_, [&, cpus = values_of(map_)](const char* key, const char* value) {
          // The map's keys may be shorter than the row's key: pad with zeros.
          std::string name(key, std::min<std::size_t>(shape_.key_size, bpf_map__key_size(map_)));
          name.resize(shape_.key_size);
          if (!shape_.largest.empty())
            largest.emplace(name, largest_of_cpus(shape_, value, cpus, interval));
          all.emplace(std::move(name), sum_of_cpus(shape_, value, cpus, now_ns));
        }));
    auto join = [](Reading& to, const std::string& key, const Counters& from, auto operation) {
      auto& counters = to.try_emplace(key, from.size()).first->second;
      std::ranges::transform(from, counters, counters.begin(), operation);
    };
    if (!kept_.is_open()) return all;
    kept_.each([&](const std::string& key, const char* value) {
      join(all, key, sum_of_cpus(shape_, value, 1, now_ns), std::plus<>());
      join(largest, key, largest_of_cpus(shape_, value, 1, interval),
           [](auto a, auto b) { return std::max(a, b); });
    });
    return all;
  }

  bool whole() const override { return whole_; }

  // Keys of ended processes and the like would otherwise fill the map and memory over time.
  Reading take_out(const std::vector<std::string>& idle, std::size_t known,
                   std::uint64_t now_ns) override {
    Reading gone;
    if (known <= std::min<std::size_t>(kMany, bpf_map__max_entries(map_) / 2)) return gone;
    std::string last(value_bytes(map_), '\0');
    for (auto& key : idle)
      if (!kept_.has(key) && coretap::take_out(bpf_map__fd(map_), key.data(), last.data()))
        gone.emplace(key, sum_of_cpus(shape_, last.data(), values_of(map_), now_ns));
    return gone;
  }

 private:
  Session& s_;
  CounterShape shape_;
  bpf_map* map_ = nullptr;
  KeptRows kept_;
  bool whole_ = true;
  std::uint32_t interval_ = 0;  ///< its number, for struct extreme
};

std::string cannot_read(std::string_view iterator) {
  return fmt::format("cannot read the iterator {}", iterator);
}

class LiveSource : public Source {
 public:
  explicit LiveSource(Session& session) : s_(session) {}

  Result<void> open() override {
    auto* map = s_.map(MapName("ledger"));
    return map ? ledger_.open(map) : Result<void>();
  }

  Result<void> open_records(TakeRecord take) override {
    auto* events = s_.map(MapName("events"));
    if (!events) return {};
    take_ = std::move(take);
    ring_.reset(ring_buffer__new(
        bpf_map__fd(events),
        [](void* source, void* data, std::size_t size) {
          auto& self = *static_cast<LiveSource*>(source);
          self.take_(data, size);
          // libbpf consumes until the buffer is empty, and programs may produce faster than that.
          // It returns after a record whose callback returns an error.
          return ++self.taken_ % kLook == 0 && self.taken_ >= self.take_least_ &&
                         monotonic_ns() >= self.take_until_
                     ? -EAGAIN
                     : 0;
        },
        this, nullptr));
    if (!ring_) return system_error("cannot read the ring buffer", errno);
    return {};
  }

  int records_fd() const override { return ring_ ? ring_buffer__epoll_fd(ring_.get()) : -1; }

  bool take_records(std::chrono::nanoseconds most, std::uint64_t least) override {
    taken_ = 0;
    take_least_ = least;
    take_until_ = monotonic_ns() + static_cast<std::uint64_t>(most.count());
    return ring_ && ring_buffer__consume(ring_.get()) == -EAGAIN;
  }

  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
    auto* map = s_.map_named(shape.map.c_str());
    if (!map) return Error{fmt::format("cannot read the map {}", shape.map), "there is none"};
    auto opened = [&](auto counters) -> Result<std::unique_ptr<CounterSource>> {
      if (auto r = counters->open(map); !r) return r.error();
      return std::unique_ptr<CounterSource>(std::move(counters));
    };
    if (shape.keyed) return opened(std::make_unique<KeyedCounters>(s_, std::move(shape)));
    return opened(std::make_unique<SlotCounters>(s_, std::move(shape)));
  }

  bool each_entry(MapName name, const VisitEntry& visit) override {
    auto* map = s_.map(name);
    if (!map) return true;
    return s_.complete(
        coretap::each_entry(map, [&, keys = bpf_map__key_size(map), bytes = value_bytes(map)](
                                     const char* key, const char* value) {
          visit({key, keys}, {value, bytes});
        }));
  }

  void erase(MapName name, const void* key) override {
    if (auto* map = s_.map(name)) bpf_map_delete_elem(bpf_map__fd(map), key);
  }

  bool stack_of(std::uint64_t id, stack& to) override {
    auto* map = s_.map(MapName("stacks"));
    return map && bpf_map_lookup_elem(bpf_map__fd(map), &id, &to) == 0;
  }

  Result<void> open_iterator(ProgramName name) override {
    const auto what = cannot_read(name);
    auto* program = bpf_object__find_program_by_name(s_.object.get(), name.c_str());
    if (!program || bpf_program__fd(program) < 0) return Error{what, "it is not loaded"};
    auto* link = bpf_program__attach_iter(program, nullptr);
    if (!link) return system_error(what, errno, kUnsupported);
    iterators_.insert_or_assign(name.c_str(), Link(link));
    return {};
  }

  Result<std::string> pass(ProgramName program, std::size_t size) override {
    const auto what = cannot_read(program);
    auto found = iterators_.find(program.c_str());
    if (found == iterators_.end()) return Error{what, "it is not open"};
    // An iterator cannot be rewound: each pass opens a new descriptor.
    const Fd fd(bpf_iter_create(found->second.fd()));
    if (!fd) return system_error(what, errno);
    std::string bytes;
    char buffer[32768];
    for (ssize_t n; (n = read(fd.get(), buffer, sizeof buffer)) != 0;) {
      if (n > 0)
        bytes.append(buffer, static_cast<std::size_t>(n));
      else if (errno != EINTR && errno != EAGAIN)  // EAGAIN: after a million objects
        return system_error(what, errno);
    }
    if (bytes.size() % size) return Error{what, "a record is incomplete"};
    return bytes;
  }

  void add_ledger(std::uint64_t* count) override {
    if (!ledger_.is_open()) return;
    ledger_.sum(count, LEDGER_CAUSES);
    // If tracepoints are preemptible, other tasks' events on that CPU miss the busy program.
    auto add_missed = [&](int program) {
      bpf_prog_info info{};
      __u32 size = sizeof info;
      if (program >= 0 && bpf_obj_get_info_by_fd(program, &info, &size) == 0)
        count[LEDGER_MISSED] += info.recursion_misses;
    };
    for (auto* program : programs_of(s_.object.get())) add_missed(bpf_program__fd(program));
    for (auto& copy : s_.copies) add_missed(copy.get());
  }

 private:
  struct RingDeleter {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
  };

  Session& s_;
  TakeRecord take_;
  std::uint64_t taken_ = 0, take_least_ = 0, take_until_ = 0;
  std::unique_ptr<ring_buffer, RingDeleter> ring_;
  /// Programs of type iter: reading a descriptor of one runs it once for each object.
  std::map<std::string, Link, std::less<>> iterators_;
  CpuSlots ledger_;
};

}  // namespace

std::unique_ptr<Source> live_source(Session& session) {
  return std::make_unique<LiveSource>(session);
}

}  // namespace coretap
