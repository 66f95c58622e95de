#include "program/live_source.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/clock.hpp"
#include "program/kept_rows.hpp"
#include "program/maps.hpp"
#include "program/section.hpp"
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
  explicit SlotCounters(CounterShape shape) : shape_(std::move(shape)) {}

  Result<void> open(const Session& s) {
    auto* map = s.map(shape_.map);
    if (!map) return Error{fmt::format("cannot read the map {}", shape_.map), "there is none"};
    return slots_.open(map);
  }

  Reading read(std::uint64_t, Reading&) override {
    Reading all;
    const auto counters = shape_.value_size / 8;
    Counters sum(slots_.size() / 8);
    slots_.sum(sum.data(), sum.size());
    for (std::uint32_t number = 0; (number + 1) * counters <= sum.size(); number++) {
      auto first = sum.begin() + static_cast<std::ptrdiff_t>(number * counters);
      auto last = first + static_cast<std::ptrdiff_t>(counters);
      if (std::all_of(first, last, [](auto c) { return c == 0; })) continue;
      std::string key(shape_.key_size, '\0');
      memcpy(key.data(), &number, std::min(sizeof number, key.size()));
      all.emplace(std::move(key), Counters(first, last));
    }
    return all;
  }

 private:
  CounterShape shape_;
  CpuSlots slots_;
};

/// Values by key, in a hash map and in rows that each CPU caches.
class KeyedCounters : public CounterSource {
 public:
  KeyedCounters(Session& s, CounterShape shape)
      : s_(s), shape_(std::move(shape)), map_(s.map(shape_.map)) {}

  Result<void> open() {
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
      std::transform(from.begin(), from.end(), counters.begin(), counters.begin(), operation);
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
  bpf_map* map_;
  KeptRows kept_;
  bool whole_ = true;
  std::uint32_t interval_ = 0;  ///< its number, for struct extreme
};

}  // namespace

std::unique_ptr<Source> live_source(Session& session) {
  return std::make_unique<LiveSource>(session);
}

void LiveSource::RingDeleter::operator()(ring_buffer* ring) const { ring_buffer__free(ring); }

Result<void> LiveSource::open() {
  auto* map = s_.map("ledger");
  return map ? ledger_.open(map) : Result<void>();
}

Result<void> LiveSource::open_records(TakeRecord take) {
  auto* events = s_.map("events");
  if (!events) return {};
  take_ = std::move(take);
  ring_.reset(ring_buffer__new(
      bpf_map__fd(events),
      [](void* source, void* data, std::size_t size) {
        auto& self = *static_cast<LiveSource*>(source);
        self.take_(data, size);
        // libbpf consumes until the buffer is empty, and programs may produce faster than that. It
        // returns after a record whose callback returns an error.
        return ++self.taken_ % kLook == 0 && self.taken_ >= self.take_least_ &&
                       monotonic_ns() >= self.take_until_
                   ? -EAGAIN
                   : 0;
      },
      this, nullptr));
  if (!ring_) return system_error("cannot read the ring buffer", errno);
  return {};
}

int LiveSource::records_fd() const { return ring_ ? ring_buffer__epoll_fd(ring_.get()) : -1; }

bool LiveSource::take_records(std::chrono::nanoseconds most, std::uint64_t least) {
  taken_ = 0;
  take_least_ = least;
  take_until_ = monotonic_ns() + static_cast<std::uint64_t>(most.count());
  return ring_ && ring_buffer__consume(ring_.get()) == -EAGAIN;
}

Result<std::unique_ptr<CounterSource>> LiveSource::counters(CounterShape shape) {
  if (shape.keyed) {
    if (!s_.map(shape.map))
      return Error{fmt::format("cannot read the map {}", shape.map), "there is none"};
    auto keyed = std::make_unique<KeyedCounters>(s_, std::move(shape));
    if (auto opened = keyed->open(); !opened) return opened.error();
    return std::unique_ptr<CounterSource>(std::move(keyed));
  }
  auto slots = std::make_unique<SlotCounters>(std::move(shape));
  if (auto opened = slots->open(s_); !opened) return opened.error();
  return std::unique_ptr<CounterSource>(std::move(slots));
}

bool LiveSource::each_entry(std::string_view name, const VisitEntry& visit) {
  auto* map = s_.map(name);
  if (!map) return true;
  return s_.complete(
      coretap::each_entry(map, [&, bytes = value_bytes(map)](const char* key, const char* value) {
        visit(key, {value, bytes});
      }));
}

void LiveSource::erase(std::string_view name, const void* key) {
  if (auto* map = s_.map(name)) bpf_map_delete_elem(bpf_map__fd(map), key);
}

bool LiveSource::stack_of(std::uint64_t id, stack& to) {
  auto* map = s_.map("stacks");
  return map && bpf_map_lookup_elem(bpf_map__fd(map), &id, &to) == 0;
}

Result<void> LiveSource::open_iterator(std::string_view program) {
  return iterators_[std::string(program)].open(s_.object.get(), program);
}

Result<std::string> LiveSource::pass(std::string_view program, std::size_t size) {
  auto found = iterators_.find(program);
  if (found == iterators_.end())
    return Error{fmt::format("cannot read the iterator {}", program), "it is not open"};
  return found->second.read(size);
}

void LiveSource::add_ledger(std::uint64_t* count) {
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

}  // namespace coretap
