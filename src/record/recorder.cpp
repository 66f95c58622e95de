#include "record/recorder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "coretap/clock.hpp"
#include "lib/stack/runtime.h"
#include "record/changes.hpp"

namespace coretap::record {

namespace {

constexpr std::size_t kMostBatch = 256 << 10;    // bytes of records that are written at once
constexpr std::size_t kMostAnswers = 256 << 10;  // then all are forgotten, and written again
// Of those that each segment begins with; then those that are asked no more are forgotten.
constexpr std::size_t kMostCarriedAnswers = 8 << 20, kMostCarriedStacks = 8 << 20;

constexpr std::size_t kMostLargest = 256;

using Wire = protozero::pbf_wire_type;
using Counters = CounterSource::Counters;
using Reading = CounterSource::Reading;

/// Is it asked about data, again when they come again? Others are asked once, at the start.
bool of_data(Ask what) {
  switch (what) {
    case Ask::disk:
    case Ask::cgroup:
    case Ask::kernel_symbol:
    case Ask::user_symbol:
    case Ask::user:
    case Ask::file:
    case Ask::inode:
    case Ask::directories:
      return true;
    default:
      return false;
  }
}

void join_largest(Reading& to, const Reading& from) {
  for (auto& [key, values] : from) {
    auto& known = to.try_emplace(key, values.size()).first->second;
    for (std::size_t i = 0; i < std::min(values.size(), known.size()); i++)
      known[i] = std::max(known[i], values[i]);
  }
}

/// The sums of stacks (bpf/lib/stack/stack_counts.bpf.h) begin with struct stack_sum.
std::uint64_t sums_in(std::string_view map) {
  return map == "stack_counts" ? sizeof(stack_sum) / sizeof(std::uint64_t) : 0;
}

/// The growth since `base`, in the first `sums` words of each row; rows without change are
/// left out. Rows that have begun again, or are gone, leave `base`.
Reading since(const Reading& now, Reading& base, std::size_t sums) {
  if (base.empty()) return now;
  Reading more;
  std::erase_if(base, [&](auto& row) { return !now.contains(row.first); });
  for (auto& [key, words] : now) {
    auto before = base.find(key);
    if (before != base.end() && before->second == words) continue;
    auto& added = more.emplace_hint(more.end(), key, words)->second;
    if (before == base.end()) continue;
    const auto& then = before->second;
    const auto count = static_cast<std::ptrdiff_t>(std::min({sums, then.size(), words.size()}));
    if (!std::equal(then.begin(), then.begin() + count, words.begin(), std::less_equal<>())) {
      base.erase(before);
      continue;
    }
    for (std::ptrdiff_t i = 0; i < count; i++)
      added[static_cast<std::size_t>(i)] -= then[static_cast<std::size_t>(i)];
  }
  return more;
}

std::uint64_t add(std::uint64_t a, std::uint64_t b) { return a + b; }
std::uint64_t larger(std::uint64_t a, std::uint64_t b) { return std::max(a, b); }

/// A key with its owner, as it is written; false: its form is not known.
bool hide_key(const Recorder& recorder, const MapLayout& map, std::string& key) {
  static const Layout kOwner{.bytes = sizeof(task_id),
                             .members = {{.path = "comm",
                                          .at = offsetof(task_id, comm),
                                          .bytes = 1,
                                          .count = COMM_LEN,
                                          .kind = Member::signed_number}}};
  const auto own = map.key_bytes - map.owner;
  if (key.size() < map.key_bytes) return false;
  auto first = key.substr(0, own), owner = key.substr(own);
  const bool known = recorder.hide(map.key, first) && (!map.owner || recorder.hide(kOwner, owner));
  key = first + owner;
  return known;
}

/// Rows whose keys have become equal are one. Keys without a layout are indexes.
template <class Join>
Reading hide_keys(const Recorder& recorder, const MapLayout& map, const Reading& rows, Join join) {
  if (!map.key) return rows;
  Reading hidden;
  for (auto& [key, words] : rows) {
    auto now = key;
    if (!hide_key(recorder, map, now)) continue;
    auto& to = hidden.try_emplace(std::move(now), words.size()).first->second;
    for (std::size_t i = 0; i < words.size(); i++) to[i] = join(to[i], words[i]);
  }
  return hidden;
}

class RecordedCounters : public CounterSource, private Recorder::Carrier {
 public:
  RecordedCounters(Recorder& recorder, std::unique_ptr<CounterSource> live, MapLayout layout)
      : to_(recorder),
        live_(std::move(live)),
        layout_(std::move(layout)),
        changes_(layout_.key_bytes, layout_.words()) {
    to_.put(Part::map, layout_.bytes());
    to_.carry(*this);
  }
  ~RecordedCounters() override { to_.forget(*this); }
  RecordedCounters(const RecordedCounters&) = delete;
  RecordedCounters& operator=(const RecordedCounters&) = delete;

  Reading read(std::uint64_t now_ns, Reading& largest) override {
    auto all = live_->read(now_ns, largest);
    if (!live_->whole()) return all;
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint64(1, layout_.number);
    const auto hidden = to_.is_anonymous() ? hide_keys(to_, layout_, all, add) : Reading();
    const auto& written = to_.is_anonymous() ? hidden : all;
    out.add_bytes(2, changes_.to(since(written, base_, layout_.words())));
    if (to_.segments()) last_ = written;
    if (layout_.largest)
      out.add_bytes(
          3, Changes::whole(to_.is_anonymous() ? hide_keys(to_, layout_, largest, larger) : largest,
                            layout_.key_bytes, layout_.largest));
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
    auto written = to_.is_anonymous() ? hide_keys(to_, layout_, gone, add) : gone;
    for (auto& [key, last] : written) {
      if (auto before = base_.find(key); before != base_.end())
        for (std::size_t i = 0; i < last.size(); i++) last[i] -= before->second[i];
      changes_.erase(key);
      base_.erase(key);
      last_.erase(key);
    }
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint64(1, layout_.number);
    out.add_bytes(2, Changes::whole(written, layout_.key_bytes, layout_.words()));
    to_.put(Part::removed, bytes);
    return gone;
  }

 private:
  void begin_segment() override {
    to_.put(Part::map, layout_.bytes());
    changes_ = Changes(layout_.key_bytes, layout_.words());
    base_ = last_;
  }

  Recorder& to_;
  std::unique_ptr<CounterSource> live_;
  MapLayout layout_;
  Changes changes_;
  Reading base_, last_;  ///< when the segment began, and now
  Reading until_report_;
};

class RecordedSource : public Source, private Recorder::Carrier {
 public:
  RecordedSource(Recorder& recorder, std::unique_ptr<Source> live)
      : to_(recorder), live_(std::move(live)) {
    to_.carry(*this);
  }
  ~RecordedSource() override { to_.forget(*this); }
  RecordedSource(const RecordedSource&) = delete;
  RecordedSource& operator=(const RecordedSource&) = delete;

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

  void keep_record(std::string_view record) override {
    std::string marked(reinterpret_cast<const char*>(&kReportRecord), sizeof kReportRecord);
    marked += record;
    to_.record(marked.data(), marked.size());
  }

  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
    MapLayout layout{.number = maps_++,
                     .name = shape.map,
                     .key_bytes = shape.key_size,
                     .value_bytes = shape.value_size,
                     .largest = shape.largest.size(),
                     .owner = shape.owned ? sizeof(task_id) : 0,
                     .largest_at = {shape.largest.begin(), shape.largest.end()}};
    // Without keys, they are indexes.
    learn(layout, shape.keyed);
    if (shape.keyed && to_.is_anonymous()) {
      if (!Anonymous::knows(layout.key))
        return Error{fmt::format("cannot record {} anonymously", layout.name),
                     "the form of its keys is not known"};
      to_.rows_have(layout.key);
    }
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
                       .value_bytes = values,
                       .sums = sums_in(map)};
      learn(layout, true);
      to_.put(Part::map, layout.bytes());
      const Changes none(keys, layout.words());
      found =
          entries_.try_emplace(std::string(map), Entries{std::move(layout), none, {}, {}}).first;
    }
    auto& known = found->second;
    if (to_.is_anonymous()) rows = hidden_entries(known.layout, rows);
    put_entries(known, rows);
    if (to_.segments()) known.last = std::move(rows);
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
    if (to_.segments() && known_stacks_.insert(id).second) {
      stack_bytes_ += bytes.size();
      stacks_.emplace_back(id, std::move(bytes));
    }
    return true;
  }

  Result<void> open_iterator(ProgramName program) override { return live_->open_iterator(program); }
  Result<std::string> pass(ProgramName program, std::size_t size) override {
    auto records = live_->pass(program, size);
    if (!records) return records;
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_string(1, program.c_str());
    out.add_bytes(2, to_.is_anonymous() ? hidden_pass(*records, size) : *records);
    to_.put(Part::pass, bytes);
    if (to_.segments() && !records->empty()) passes_[std::string(program)] = std::move(bytes);
    return records;
  }

  void add_ledger(std::uint64_t* count) override {
    std::uint64_t own[LEDGER_CAUSES] = {};
    live_->add_ledger(own);
    std::string bytes;
    for (int i = 0; i < LEDGER_CAUSES; i++) {
      put_varint(bytes, own[i] - counted_before_[i]);
      counted_[i] = own[i];
      count[i] += own[i];
    }
    if (std::exchange(ledger_, bytes) != bytes) to_.put(Part::ledger, bytes);
  }

 private:
  /// The layouts of its keys and values, if they are as large as those that are read.
  void learn(MapLayout& map, bool keyed) const {
    auto* known = to_.layouts();
    if (!known) return;
    map.value = known->of_value(map.name, map.value_bytes);
    if (map.value.bytes != map.value_bytes) map.value = {};
    if (keyed) map.key = known->of_key(map.name);
    if (map.key.bytes > map.key_bytes - map.owner) map.key = {};
  }

  struct Entries {
    MapLayout layout;
    Changes changes;
    Reading base, last;  ///< when the segment began, and now
  };

  std::string hidden_pass(const std::string& records, std::size_t size) const {
    const auto& layout = to_.record_layout();
    std::string all;
    if (layout.bytes != size) return all;
    for (std::size_t at = 0; at + size <= records.size(); at += size) {
      auto one = records.substr(at, size);
      if (to_.hide(layout, one)) all += one;
    }
    return all;
  }

  /// Entries of unknown form are left out.
  Reading hidden_entries(const MapLayout& map, const Reading& rows) const {
    Reading hidden;
    if (!Anonymous::knows(map.key) || !Anonymous::knows(map.value)) return hidden;
    for (auto& [key, words] : rows) {
      auto now = key;
      std::string value(reinterpret_cast<const char*>(words.data()),
                        words.size() * sizeof words[0]);
      if (!hide_key(to_, map, now) || !to_.hide(map.value, value)) continue;
      auto& to = hidden.try_emplace(std::move(now), words.size()).first->second;
      memcpy(to.data(), value.data(), value.size());
    }
    return hidden;
  }

  void put_entries(Entries& known, const Reading& rows) {
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint64(1, known.layout.number);
    out.add_bytes(2, known.changes.to(since(rows, known.base, known.layout.sums)));
    to_.put(Part::entries, bytes);
  }

  void begin_segment() override {
    ledger_.clear();
    std::ranges::copy(counted_, counted_before_);
    while (stack_bytes_ > kMostCarriedStacks) {
      stack_bytes_ -= stacks_.front().second.size();
      known_stacks_.erase(stacks_.front().first);
      stacks_.pop_front();
    }
    for (auto& [id, bytes] : stacks_) to_.put(Part::stack, bytes);
    bool any = !passes_.empty();
    for (auto& [program, bytes] : passes_) to_.put(Part::pass, bytes);
    for (auto& [name, known] : entries_) {
      to_.put(Part::map, known.layout.bytes());
      known.changes = Changes(known.layout.key_bytes, known.layout.words());
      if (known.layout.sums) {
        known.base = known.last;
        continue;
      }
      put_entries(known, known.last);
      any = true;
    }
    if (any) to_.did(Did::base);
  }

  Recorder& to_;
  std::unique_ptr<Source> live_;
  std::string ledger_;
  std::uint64_t counted_[LEDGER_CAUSES] = {}, counted_before_[LEDGER_CAUSES] = {};
  std::uint64_t maps_ = 0;
  std::map<std::string, Entries, std::less<>> entries_;
  // For the next segment:
  std::map<std::string, std::string, std::less<>> passes_;  ///< the last one, by program
  std::deque<std::pair<std::uint64_t, std::string>> stacks_;
  std::unordered_set<std::uint64_t> known_stacks_;
  std::size_t stack_bytes_ = 0;
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
  if (sums) out.add_uint64(7, sums);
  if (owner) out.add_uint64(8, owner);
  for (auto at : largest_at) out.add_uint64(9, at);
  if (key) out.add_bytes(10, key.packed());
  if (value) out.add_bytes(11, value.packed());
  return to;
}

MapLayout MapLayout::of(std::string_view bytes) {
  MapLayout layout;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  std::uint64_t* const numbers[] = {nullptr,         &layout.number,    nullptr,
                                    &layout.kind,    &layout.key_bytes, &layout.value_bytes,
                                    &layout.largest, &layout.sums,      &layout.owner};
  while (in.next()) {
    const auto tag = in.tag();
    if (tag == 2 && in.wire_type() == protozero::pbf_wire_type::length_delimited)
      layout.name = in.get_string();
    else if ((tag == 10 || tag == 11) && in.wire_type() == Wire::length_delimited)
      (tag == 10 ? layout.key : layout.value) = Layout::of(in.get_string()).value_or(Layout());
    else if (tag == 9 && in.wire_type() == Wire::varint && layout.largest_at.size() < kMostLargest)
      layout.largest_at.push_back(in.get_uint64());
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
  if (answers_.size() >= kMostAnswers) forget_answers();
  auto [at, is_new] = answers_.try_emplace(std::move(key));
  auto& known = at->second;
  if (segments_) known.segment = segments_->number();
  if (std::exchange(known.hash, hash) == hash) return answer;
  if (segments_) {
    answer_bytes_ += (is_new ? at->first.size() : 0) + answer.size() - known.answer.size();
    known.answer = answer;
  }
  put_answer(at->first, answer);
  return answer;
}

/// `key`: the kind and the question.
void Recorder::put_answer(std::string_view key, std::string_view answer) {
  std::string bytes, hidden_question, hidden_answer;
  auto question = key.substr(1);
  if (anonymous_) {
    const auto what = static_cast<Ask>(key[0]);
    hidden_answer = anonymous_->answer(what, question, answer);
    hidden_question = anonymous_->question(what, question);
    answer = hidden_answer;
    question = hidden_question;
  }
  protozero::pbf_writer out(bytes);
  out.add_uint64(1, static_cast<std::uint8_t>(key[0]));
  out.add_bytes(2, question.data(), question.size());
  out.add_bytes(3, answer.data(), answer.size());
  put(Part::answer, bytes);
}

void Recorder::forget_answers() {
  if (!segments_) return answers_.clear();
  std::erase_if(answers_, [&](auto& one) {
    const bool old =
        one.second.segment < segments_->number() && of_data(static_cast<Ask>(one.first[0]));
    if (old) answer_bytes_ -= one.first.size() + one.second.answer.size();
    return old;
  });
}

Result<void> Recorder::open(Segments& segments) {
  segments_ = &segments;
  return segments.begin_next(out_, coretap::monotonic_ns());
}

std::uint64_t Recorder::monotonic_now() { return coretap::monotonic_ns(); }

void Recorder::say_counts(std::uint64_t events, std::uint64_t shown) {
  if (!state_) return;
  state_->events = events;
  if (!segments_) state_->bytes = out_.bytes();
  if (state_->shown.exchange(shown) != shown && segments_) segments_->wake_if_asked();
}

void Recorder::next_segment() {
  write_records();
  out_.close();
  if (answer_bytes_ > kMostCarriedAnswers) forget_answers();
  if (!segments_->begin_next(out_, now_)) return;
  head_.run = segments_->run();
  head_.segment = segments_->number();
  put(Part::head, head_.bytes());
  ahead_ = 0;
  set_clock();
  for (auto& [key, known] : answers_) put_answer(key, known.answer);
  // Objects that were made first are given back first: maps before what refers to them.
  for (auto* one : carriers_) one->begin_segment();
  did(Did::begin);
}

void Recorder::record(const void* data, std::size_t size) {
  if (segments_ && out_.failed()) {
    segments_->state().unrecorded += 1 + std::exchange(unwritten_, 0);
    return;
  }
  unwritten_++;
  std::string_view record(static_cast<const char*>(data), size);
  std::string hidden;
  if (anonymous_) record = hidden = hidden_record(record);
  if (record.empty()) return;
  put_varint(batch_, record.size());
  batch_.append(record);
  if (batch_.size() >= kMostBatch) write_records();
}

bool Recorder::hide(const Layout& layout, std::string& bytes) const {
  if (!anonymous_) return true;
  if (!layout || bytes.size() < layout.bytes) return false;
  bytes = anonymous_->fields(layout, bytes, cgroups_);
  return true;
}

/// Empty: its form is not known.
std::string Recorder::hidden_record(std::string_view record) const {
  const auto mark = mark_of(record);
  if (mark == STACK_PROCESS)
    return std::string(record.substr(0, std::min(record.size(), sizeof(stack_process))));
  if (mark == RUNTIME_CODE) return anonymous_->runtime_code(record);
  if (head_.layout) return anonymous_->record(head_.layout, record);
  return row_key_ ? anonymous_->row_text(row_key_, record) : std::string();
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
