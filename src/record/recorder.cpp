#include "record/recorder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "coretap/clock.hpp"
#include "record/changes.hpp"

namespace coretap::record {

namespace {

constexpr std::size_t kMostBatch = 256 << 10;    // bytes of records that are written at once
constexpr std::size_t kMostAnswers = 256 << 10;  // then all are forgotten, and written again

using Counters = CounterSource::Counters;
using Reading = CounterSource::Reading;

void join_largest(Reading& to, const Reading& from) {
  for (auto& [key, values] : from) {
    auto& known = to.try_emplace(key, values.size()).first->second;
    for (std::size_t i = 0; i < std::min(values.size(), known.size()); i++)
      known[i] = std::max(known[i], values[i]);
  }
}

class RecordedCounters : public CounterSource {
 public:
  RecordedCounters(Recorder& recorder, std::unique_ptr<CounterSource> live, MapLayout layout)
      : to_(recorder),
        live_(std::move(live)),
        layout_(std::move(layout)),
        changes_(layout_.key_bytes, layout_.words()) {
    to_.put(Part::map, layout_.bytes());
  }

  Reading read(std::uint64_t now_ns, Reading& largest) override {
    auto all = live_->read(now_ns, largest);
    if (!live_->whole()) return all;
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint64(1, layout_.number);
    out.add_bytes(2, changes_.to(all));
    if (layout_.largest)
      out.add_bytes(3, Changes::whole(largest, layout_.key_bytes, layout_.largest));
    to_.put(Part::reading, bytes);
    // The largest values of an interval are read once; a report has those of samples, too.
    join_largest(until_report_, largest);
    largest = until_report_;
    if (!to_.sampling) until_report_.clear();
    return all;
  }

  bool whole() const override { return live_->whole(); }

  Reading take_out(const std::vector<std::string>& idle, std::size_t known,
                   std::uint64_t now_ns) override {
    auto gone = live_->take_out(idle, known, now_ns);
    if (gone.empty()) return gone;
    for (auto& [key, last] : gone) changes_.erase(key);
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint64(1, layout_.number);
    out.add_bytes(2, Changes::whole(gone, layout_.key_bytes, layout_.words()));
    to_.put(Part::removed, bytes);
    return gone;
  }

 private:
  Recorder& to_;
  std::unique_ptr<CounterSource> live_;
  MapLayout layout_;
  Changes changes_;
  Reading until_report_;
};

class RecordedSource : public Source {
 public:
  RecordedSource(Recorder& recorder, std::unique_ptr<Source> live)
      : to_(recorder), live_(std::move(live)) {}

  Result<void> open() override { return live_->open(); }

  Result<void> open_records(TakeRecord take) override {
    return live_->open_records([this, take = std::move(take)](const void* data, std::size_t size) {
      take(data, size);
      to_.record(data, size);
    });
  }
  int records_fd() const override { return live_->records_fd(); }
  bool take_records(std::chrono::nanoseconds most, std::uint64_t least) override {
    return live_->take_records(most, least);
  }

  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
    MapLayout layout{.number = maps_++,
                     .name = shape.map,
                     .key_bytes = shape.key_size,
                     .value_bytes = shape.value_size,
                     .largest = shape.largest.size()};
    auto live = live_->counters(std::move(shape));
    if (!live) return live.error();
    return std::unique_ptr<CounterSource>(
        std::make_unique<RecordedCounters>(to_, std::move(*live), std::move(layout)));
  }

  bool each_entry(MapName name, const VisitEntry& visit) override {
    const std::string_view map = name;
    Changes::Rows rows;
    std::size_t keys = 0, values = 0;
    const bool all = live_->each_entry(name, [&](std::string_view key, std::string_view value) {
      keys = key.size();
      values = value.size();
      auto& words = rows.try_emplace(std::string(key), (value.size() + 7) / 8).first->second;
      memcpy(words.data(), value.data(), value.size());
      visit(key, value);
    });
    if (!keys && !entries_.contains(map)) return all;
    auto found = entries_.find(map);
    if (found == entries_.end()) {
      MapLayout layout{.number = maps_++,
                       .name = std::string(map),
                       .kind = MapLayout::entries,
                       .key_bytes = keys,
                       .value_bytes = values};
      to_.put(Part::map, layout.bytes());
      found = entries_
                  .try_emplace(std::string(map),
                               std::pair(layout.number, Changes(keys, layout.words())))
                  .first;
    }
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint64(1, found->second.first);
    out.add_bytes(2, found->second.second.to(rows));
    to_.put(Part::entries, bytes);
    return all;
  }
  void erase(MapName map, const void* key) override { live_->erase(map, key); }

  bool stack_of(std::uint64_t id, stack& to) override {
    if (!live_->stack_of(id, to)) return false;
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_fixed64(1, id);
    const auto depth = std::min<std::size_t>(to.depth & ~STACK_LINKED, STACK_DEPTH);
    out.add_bytes(2, reinterpret_cast<const char*>(&to),
                  offsetof(stack, ip) + depth * sizeof to.ip[0]);
    to_.put(Part::stack, bytes);
    return true;
  }

  Result<void> open_iterator(ProgramName program) override { return live_->open_iterator(program); }
  Result<std::string> pass(ProgramName program, std::size_t size) override {
    auto records = live_->pass(program, size);
    if (!records) return records;
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_string(1, program.c_str());
    out.add_bytes(2, *records);
    to_.put(Part::pass, bytes);
    return records;
  }

  void add_ledger(std::uint64_t* count) override {
    std::uint64_t own[LEDGER_CAUSES] = {};
    live_->add_ledger(own);
    std::string bytes;
    for (int i = 0; i < LEDGER_CAUSES; i++) {
      put_varint(bytes, own[i]);
      count[i] += own[i];
    }
    if (std::exchange(ledger_, bytes) != bytes) to_.put(Part::ledger, bytes);
  }

 private:
  Recorder& to_;
  std::unique_ptr<Source> live_;
  std::string ledger_;
  std::uint64_t maps_ = 0;
  std::map<std::string, std::pair<std::uint64_t, Changes>, std::less<>> entries_;
};

}  // namespace

std::string MapLayout::bytes() const {
  std::string to;
  protozero::pbf_writer out(to);
  out.add_uint64(1, number);
  out.add_string(2, name);
  out.add_uint64(3, kind);
  out.add_uint64(4, key_bytes);
  out.add_uint64(5, value_bytes);
  out.add_uint64(6, largest);
  return to;
}

MapLayout MapLayout::of(std::string_view bytes) {
  MapLayout layout;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  std::uint64_t* const numbers[] = {nullptr,        &layout.number,    nullptr,
                                    &layout.kind,   &layout.key_bytes, &layout.value_bytes,
                                    &layout.largest};
  while (in.next()) {
    const auto tag = in.tag();
    if (tag == 2 && in.wire_type() == protozero::pbf_wire_type::length_delimited)
      layout.name = in.get_string();
    else if (tag < std::size(numbers) && numbers[tag] &&
             in.wire_type() == protozero::pbf_wire_type::varint)
      *numbers[tag] = in.get_uint64();
    else
      in.skip();
  }
  return layout;
}

std::unique_ptr<Source> Recorder::over(std::unique_ptr<Source> live) {
  return std::make_unique<RecordedSource>(*this, std::move(live));
}

std::string Recorder::answer(Ask what, std::string_view question,
                             const std::function<std::string()>& live) {
  auto answer = live();
  std::string key(1, static_cast<char>(what));
  key += question;
  const auto hash = std::hash<std::string>()(answer) | 1;
  if (answers_.size() >= kMostAnswers) answers_.clear();
  if (std::exchange(answers_[std::move(key)], hash) == hash) return answer;
  std::string bytes;
  protozero::pbf_writer out(bytes);
  out.add_uint64(1, static_cast<std::uint64_t>(what));
  out.add_bytes(2, question.data(), question.size());
  out.add_bytes(3, answer);
  put(Part::answer, bytes);
  return answer;
}

void Recorder::record(const void* data, std::size_t size) {
  put_varint(batch_, size);
  batch_.append(static_cast<const char*>(data), size);
  if (batch_.size() >= kMostBatch) write_records();
}

void Recorder::write_records() {
  if (batch_.empty()) return;
  out_.put(Part::records, batch_);
  batch_.clear();
}

void Recorder::set_clock() {
  const auto ahead = wall_ahead_ns();
  if (std::exchange(ahead_, ahead) == ahead) return;
  std::string bytes;
  protozero::pbf_writer out(bytes);
  out.add_sint64(1, ahead);
  put(Part::clock, bytes);
}

void Recorder::moment() {
  release_clock();
  set_clock();
  now_ = monotonic_ns();
  hold_clock(now_);
}

void Recorder::did(Did what, std::uint64_t missed) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  out.add_uint64(1, static_cast<std::uint64_t>(what));
  out.add_uint64(2, now_);
  if (missed) out.add_uint64(3, missed);
  put(Part::mark, bytes);
  release_clock();
  if (what == Did::begin) flush();
}

}  // namespace coretap::record
