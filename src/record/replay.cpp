#include "record/replay.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "coretap/clock.hpp"
#include "coretap/fields.hpp"
#include "lib/stack/runtime.h"
#include "record/changes.hpp"
#include "record/recorder.hpp"

namespace coretap::record {

namespace {

constexpr std::size_t kMostAnswerBytes = 256 << 20;
constexpr std::size_t kMostStacks = 1 << 20;
constexpr std::size_t kMostMaps = 256;
constexpr std::uint64_t kMostKey = 4096, kMostValue = 1 << 20;

using Message = protozero::pbf_reader;
using Wire = protozero::pbf_wire_type;

/// The number and the bytes in a part of two or three fields.
struct Numbered {
  std::uint64_t number = 0;
  std::string_view name, bytes, more;

  static Numbered of(std::string_view part) {
    Numbered all;
    Message in(part.data(), part.size());
    while (in.next()) {
      const auto wire = in.wire_type();
      auto view = [&] {
        const auto v = in.get_view();
        return std::string_view(v.data(), v.size());
      };
      if (in.tag() == 1 && wire == Wire::varint)
        all.number = in.get_uint64();
      else if (in.tag() == 1 && wire == Wire::fixed64)
        all.number = in.get_fixed64();
      else if (in.tag() == 1 && wire == Wire::length_delimited)
        all.name = view();
      else if (in.tag() == 2 && wire == Wire::length_delimited)
        all.bytes = view();
      else if (in.tag() == 3 && wire == Wire::length_delimited)
        all.more = view();
      else
        in.skip();
    }
    return all;
  }
};

/// The bytes of a row's counters, and back.
std::string_view bytes_of(const Changes::Words& words, std::size_t bytes) {
  return {reinterpret_cast<const char*>(words.data()), bytes};
}
Changes::Words words_of(std::string_view bytes) {
  Changes::Words words((bytes.size() + 7) / 8);
  memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

struct Map {
  using Reading = CounterSource::Reading;

  MapLayout layout;
  Changes rows;
  Reading largest, removed;  ///< since they were last given to a report
  Reading before;            ///< of the segments before this one
  // Where the layouts here are others:
  std::optional<Move> key = {}, value = {};
  std::vector<std::size_t> largest_at = {};  ///< offsets in the value here, as in layout.largest_at

  bool moves() const { return key || value; }
  std::size_t key_bytes() const {
    if (!key) return layout.key_bytes;
    if (layout.owner) return in_words(key->to_bytes()) + layout.owner;
    // Keys of rows may be longer than those of the map.
    return layout.key_bytes - key->from_bytes() + key->to_bytes();
  }
  std::size_t value_bytes() const { return value ? value->to_bytes() : layout.value_bytes; }

  std::string moved_key(const std::string& from) const {
    if (!key) return from;
    auto to = (*key)(std::string_view(from).substr(0, key->from_bytes()));
    to.resize(key_bytes());
    if (layout.owner)
      to.replace(to.size() - layout.owner, layout.owner, from, from.size() - layout.owner);
    return to;
  }
  Changes::Words moved_value(const Changes::Words& from) const {
    return value ? words_of((*value)(bytes_of(from, layout.value_bytes))) : from;
  }
  /// Rows whose keys have become equal are one.
  Reading moved(Reading from) const {
    if (!moves()) return from;
    Reading to;
    for (auto& [old, words] : from) {
      auto now = moved_value(words);
      auto [row, fresh] = to.try_emplace(moved_key(old), std::move(now));
      if (fresh) continue;
      for (std::size_t i = 0; i < now.size(); i++) row->second[i] += now[i];
    }
    return to;
  }

  void learn(const ObjectLayouts& own) {
    const auto to_key = layout.key ? own.of_key(layout.name) : Layout();
    const auto to_value = layout.value ? own.of_value(layout.name, layout.value_bytes) : Layout();
    if (to_key && to_key != layout.key) key.emplace(layout.key, to_key);
    if (to_value && to_value != layout.value) value.emplace(layout.value, to_value);
    for (auto at : layout.largest_at)
      largest_at.push_back(value ? place_of(at, to_value) : static_cast<std::size_t>(at));
  }

  std::size_t sums() const {
    return layout.kind == MapLayout::counters ? layout.words() : layout.sums;
  }
  Reading all() const {
    if (before.empty()) return rows.rows();
    auto all = before;
    for (auto& [key, words] : rows.rows()) {
      auto& to = all.try_emplace(key, words.size()).first->second;
      for (std::size_t i = 0; i < words.size(); i++) to[i] = words[i] + (i < sums() ? to[i] : 0);
    }
    return all;
  }
  void next_segment() {
    if (sums()) before = all();
    rows = Changes(layout.key_bytes, layout.words());
  }

 private:
  static std::size_t in_words(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

  /// Where the member at this offset is now; SIZE_MAX: nowhere.
  std::size_t place_of(std::uint64_t at, const Layout& to) const {
    for (auto& from : layout.value.members)
      if (from.at == at)
        for (auto& member : to.members)
          if (member.path == from.path) return member.at;
    return SIZE_MAX;
  }
};

}  // namespace

struct Replay::State {
  std::map<std::uint64_t, Map> maps;
  std::unordered_map<std::uint64_t, stack> stacks;
  std::map<std::string, std::deque<std::string>, std::less<>> passes;  ///< by program
  std::uint64_t ledger[LEDGER_CAUSES] = {}, ledger_before[LEDGER_CAUSES] = {};
  Source::TakeRecord take;
  const ObjectLayouts* own = nullptr;
  Layout own_record;
  std::optional<Move> record;  ///< from the recording's layout

  /// Of the keys of rows that have texts.
  const Move* row_key() const {
    for (auto& [number, map] : maps)
      if (map.layout.kind == MapLayout::counters && map.key) return &*map.key;
    return nullptr;
  }

  void next_segment() {
    for (auto& [number, map] : maps) map.next_segment();
    for (int i = 0; i < LEDGER_CAUSES; i++) ledger_before[i] += std::exchange(ledger[i], 0);
  }

  Map* named(std::string_view name, std::uint64_t kind) {
    for (auto& [number, map] : maps)
      if (map.layout.kind == kind && map.layout.name == name) return &map;
    return nullptr;
  }
};

class Replay::Counters : public CounterSource {
 public:
  Counters(State& state, CounterShape shape) : state_(state), shape_(std::move(shape)) {}

  Reading read(std::uint64_t, Reading& largest) override {
    auto* map = found();
    if (!map) return {};
    largest = moved_largest(*map);
    return in_shape(map->moved(map->all()));
  }

  Reading take_out(const std::vector<std::string>&, std::size_t, std::uint64_t) override {
    auto* map = found();
    return map ? in_shape(map->moved(std::exchange(map->removed, {}))) : Reading();
  }

 private:
  /// Maps that were laid out otherwise are not this one.
  Map* found() {
    auto* map = state_.named(shape_.map, MapLayout::counters);
    if (!map || (shape_.keyed && map->key_bytes() != shape_.key_size) ||
        map->value_bytes() != shape_.value_size ||
        (map->layout.largest != shape_.largest.size() && !map->value))
      return nullptr;
    return map;
  }

  /// Keys that are indexes are as long as keys are here.
  Reading in_shape(Reading all) const {
    if (shape_.keyed || all.empty() || all.begin()->first.size() == shape_.key_size) return all;
    Reading to;
    for (auto& [index, words] : all) {
      auto key = index;
      key.resize(shape_.key_size);
      to.emplace(std::move(key), std::move(words));
    }
    return to;
  }

  Reading moved_largest(Map& map) const {
    auto all = std::exchange(map.largest, {});
    if (!map.moves()) return in_shape(std::move(all));
    Reading to;
    for (auto& [key, values] : all) {
      auto& now = to.try_emplace(map.moved_key(key), shape_.largest.size()).first->second;
      for (std::size_t i = 0; i < now.size(); i++)
        for (std::size_t j = 0; j < std::min(values.size(), map.largest_at.size()); j++)
          if (map.largest_at[j] == shape_.largest[i]) now[i] = std::max(now[i], values[j]);
    }
    return in_shape(std::move(to));
  }

  State& state_;
  CounterShape shape_;
};

class Replay::FromFile : public Source {
 public:
  explicit FromFile(State& state) : state_(state) {}

  Result<void> open_records(TakeRecord take) override {
    state_.take = std::move(take);
    return {};
  }
  bool take_records(std::chrono::nanoseconds, std::uint64_t) override { return false; }

  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
    return std::unique_ptr<CounterSource>(std::make_unique<Counters>(state_, std::move(shape)));
  }

  bool each_entry(MapName name, const VisitEntry& visit) override {
    auto* map = state_.named(name, MapLayout::entries);
    if (!map) return true;
    for (auto& [key, words] : map->before.empty() ? map->rows.rows() : map->all())
      visit(map->moved_key(key), bytes_of(map->moved_value(words), map->value_bytes()));
    return true;
  }

  bool stack_of(std::uint64_t id, stack& to) override {
    auto found = state_.stacks.find(id);
    if (found == state_.stacks.end()) return false;
    to = found->second;
    return true;
  }

  Result<void> open_iterator(ProgramName) override { return {}; }
  Result<std::string> pass(ProgramName program, std::size_t size) override {
    auto found = state_.passes.find(program.c_str());
    if (found == state_.passes.end() || found->second.empty()) return std::string();
    auto bytes = std::move(found->second.front());
    found->second.pop_front();
    if (state_.record && size == state_.record->to_bytes()) {
      const auto each = state_.record->from_bytes();
      std::string moved;
      for (std::size_t at = 0; at + each <= bytes.size(); at += each)
        moved += (*state_.record)(std::string_view(bytes).substr(at, each));
      return moved;
    }
    bytes.resize(bytes.size() / size * size);
    return bytes;
  }

  void add_ledger(std::uint64_t* count) override {
    for (int i = 0; i < LEDGER_CAUSES; i++) count[i] += state_.ledger[i] + state_.ledger_before[i];
  }

 private:
  State& state_;
};

Replay::Replay() : state_(std::make_unique<State>()) {}
Replay::~Replay() = default;

std::unique_ptr<Source> Replay::source() { return std::make_unique<FromFile>(*state_); }

Error Replay::damaged() const {
  return Error{fmt::format("cannot read {}", path_), "it is damaged", {}, kFailed};
}

Error Replay::no_begin() const {
  return Error{fmt::format("{} ends before tracing began", path_), {}, {}, kFailed};
}

Result<void> Replay::open(const std::string& path) { return open(std::vector{path}); }

Result<void> Replay::open(const std::vector<std::string>& paths) {
  for (auto& path : paths) {
    auto& [name, file] = later_.emplace_back(path, Reader());
    if (auto r = file.open(path); !r) return r;
    file_bytes_ += file.file_bytes();
  }
  if (auto r = next_file(); !r) return r.error();
  return {};
}

/// False: there is none.
Result<bool> Replay::next_file() {
  if (later_.empty()) return false;
  const auto before = std::exchange(head_, {});
  unpacked_ += in_.unpacked_bytes();
  path_ = std::move(later_.front().first);
  in_ = std::move(later_.front().second);
  later_.pop_front();
  if (auto r = read_head(); !r) return r.error();
  if (++segments_ == 1) return true;
  if (head_.tool != before.tool || !head_.run || head_.run != before.run ||
      head_.record_bytes != before.record_bytes || head_.layout != before.layout ||
      head_.segment <= before.segment)
    return damaged();
  gaps_ += !was_split_ || head_.segment != before.segment + 1;
  state_->next_segment();
  return true;
}

Result<void> Replay::use(std::string parts, std::string next_segment) {
  for (auto* one : {&parts, &next_segment})
    if (!one->empty() || one == &parts)
      later_.emplace_back(std::string(), Reader()).second.use(std::move(*one));
  if (auto r = next_file(); !r) return r.error();
  return {};
}

Result<void> Replay::read_head() {
  Part part{};
  std::string_view bytes;
  auto got = in_.next(part, bytes);
  if (!got) return got.error();
  if (!*got) return no_begin();
  if (part != Part::head) return damaged();
  try {
    head_ = Head::of(bytes);
  } catch (const protozero::exception&) {
    return damaged();
  }
  return {};
}

std::string Replay::answer(Ask what, std::string_view question,
                           const std::function<std::string()>&) {
  std::string key(1, static_cast<char>(what));
  key += question;
  auto found = answers_.find(key);
  return found == answers_.end() ? std::string() : found->second;
}

void Replay::use(const ObjectLayouts& own, std::string_view record_type) {
  auto& state = *state_;
  state.own = &own;
  if (!head_.layout) return;
  state.own_record = own.of_struct(record_type);
  if (state.own_record && state.own_record != head_.layout)
    state.record.emplace(head_.layout, state.own_record);
}

bool Replay::moves() const {
  return state_->record ||
         std::ranges::any_of(state_->maps, [](auto& one) { return one.second.moves(); });
}

bool Replay::fine() const {
  const auto fine = static_cast<char>(Ask::fine_slots);  // the kind, before the question
  return std::ranges::any_of(answers_,
                             [&](auto& one) { return one.first[0] == fine && one.second == "1"; });
}

std::vector<Lacking> Replay::lacks() const {
  std::vector<Lacking> all;
  auto add = [&](const std::optional<Move>& move, Lacking::Of of, const std::string& map) {
    if (!move) return;
    for (auto& lack : move->lacks())
      all.push_back({of, map, lack.member, lack.why, lack.at, lack.bytes});
  };
  add(state_->record, Lacking::record, {});
  for (auto& [number, map] : state_->maps) {
    add(map.key, Lacking::key, map.layout.name);
    add(map.value, Lacking::value, map.layout.name);
  }
  return all;
}

/// As the record is here; empty: it is too short. Other records than those of events are as they
/// were: of processes, of interpreted code, and of texts for rows, which begin with a row's key.
std::string Replay::moved_record(std::string_view record) const {
  const auto mark = mark_of(record);
  if (mark == STACK_PROCESS || mark == RUNTIME_CODE || mark == kReportRecord)
    return std::string(record);
  if (auto& move = state_->record)
    return record.size() < move->from_bytes() ? std::string() : (*move)(record);
  std::string same(record);
  auto* key = head_.layout ? nullptr : state_->row_key();
  if (!key || record.size() < sizeof(row_text) || key->from_bytes() > ROW_TEXT_KEY ||
      key->to_bytes() > ROW_TEXT_KEY)
    return same;
  auto now = (*key)(record.substr(offsetof(row_text, key), key->from_bytes()));
  now.resize(ROW_TEXT_KEY);
  same.replace(offsetof(row_text, key), ROW_TEXT_KEY, now);
  return same;
}

void Replay::pass_over() { state_->passes.clear(); }

Result<void> Replay::give_records(std::string_view bytes) {
  // Readers of records may look behind those that are too short: there are zeros.
  std::string record;
  const bool others = moves();
  for (std::uint64_t size = 0; !bytes.empty();) {
    if (!take_varint(bytes, size) || size > bytes.size()) return damaged();
    records_++;
    if (others)
      record = moved_record(bytes.substr(0, size));
    else
      record.assign(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (!state_->take || (size && record.empty())) continue;
    record_bytes = record.size();
    state_->take(record.data(), record.size());
    record_bytes = SIZE_MAX;
  }
  return {};
}

Result<void> Replay::take(Part part, std::string_view bytes) {
  auto& state = *state_;
  switch (part) {
    case Part::records:
      return give_records(bytes);
    case Part::answer: {
      const auto parts = Numbered::of(bytes);
      std::string key(1, static_cast<char>(parts.number));
      key += parts.bytes;
      auto [known, is_new] = answers_.try_emplace(std::move(key));
      answer_bytes_ += (is_new ? known->first.size() : 0) + parts.more.size();
      answer_bytes_ -= known->second.size();
      if (answer_bytes_ > kMostAnswerBytes) return damaged();
      known->second = parts.more;
      return {};
    }
    case Part::clock: {
      Message in(bytes.data(), bytes.size());
      while (in.next())
        if (in.tag() == 1 && in.wire_type() == Wire::varint)
          set_wall_ahead(in.get_sint64());
        else
          in.skip();
      return {};
    }
    case Part::map: {
      auto layout = MapLayout::of(bytes);
      if (layout.key_bytes > kMostKey || layout.value_bytes > kMostValue ||
          layout.largest > layout.words() || layout.sums > layout.words() ||
          layout.owner > layout.key_bytes || layout.key.bytes > layout.key_bytes - layout.owner ||
          layout.value.bytes > layout.value_bytes || state.maps.size() >= kMostMaps)
        return damaged();
      const auto number = layout.number;
      // In another segment, it is the same one.
      if (auto known = state.maps.find(number);
          known != state.maps.end() && known->second.layout == layout) {
        known->second.rows = Changes(layout.key_bytes, layout.words());
        return {};
      }
      const Changes none(layout.key_bytes, layout.words());
      auto& map = state.maps.insert_or_assign(number, Map{std::move(layout), none, {}, {}, {}})
                      .first->second;
      if (state.own) map.learn(*state.own);
      return {};
    }
    case Part::reading:
    case Part::entries:
    case Part::removed: {
      const auto parts = Numbered::of(bytes);
      auto found = state.maps.find(parts.number);
      if (found == state.maps.end()) return damaged();
      auto& map = found->second;
      if (part == Part::removed) {
        Changes gone(map.layout.key_bytes, map.layout.words());
        if (!gone.take(parts.bytes)) return damaged();
        for (auto& [key, words] : gone.rows()) {
          map.rows.erase(key);
          auto& last = map.removed.insert_or_assign(key, words).first->second;
          auto before = map.before.find(key);
          if (before == map.before.end()) continue;
          for (std::size_t i = 0; i < last.size(); i++) last[i] += before->second[i];
          map.before.erase(before);
        }
        return {};
      }
      if (!map.rows.take(parts.bytes)) return damaged();
      if (parts.more.empty()) return {};
      Changes largest(map.layout.key_bytes, map.layout.largest);
      if (!largest.take(parts.more)) return damaged();
      for (auto& [key, values] : largest.rows()) {
        auto& known = map.largest.try_emplace(key, values.size()).first->second;
        for (std::size_t i = 0; i < values.size(); i++) known[i] = std::max(known[i], values[i]);
      }
      return {};
    }
    case Part::ledger:
      for (auto& count : state.ledger)
        if (!take_varint(bytes, count)) count = 0;
      return {};
    case Part::stack: {
      const auto parts = Numbered::of(bytes);
      if (parts.bytes.size() < offsetof(stack, ip) || parts.bytes.size() > sizeof(stack) ||
          state.stacks.size() >= kMostStacks)
        return damaged();
      auto& to = state.stacks[parts.number];
      to = {};
      memcpy(&to, parts.bytes.data(), parts.bytes.size());
      const auto frames = (parts.bytes.size() - offsetof(stack, ip)) / sizeof to.ip[0];
      if (frames < static_cast<std::size_t>(to.depth & ~STACK_LINKED))
        to.depth = static_cast<__u16>(frames);
      if (to.end >= STACK_ENDS) return damaged();
      return {};
    }
    case Part::pass: {
      const auto parts = Numbered::of(bytes);
      state.passes[std::string(parts.name)].emplace_back(parts.bytes);
      return {};
    }
    default:
      if (static_cast<std::uint32_t>(part) < kMayBePassedOver) return damaged();
      return {};
  }
}

Result<Replay::Mark> Replay::begin() {
  auto mark = next();
  if (!mark) return mark.error();
  if (!*mark || (*mark)->did != Did::begin) return no_begin();
  return **mark;
}

Result<std::optional<Replay::Mark>> Replay::next() {
  try {
    Part part{};
    std::string_view bytes;
    for (;;) {
      auto got = in_.next(part, bytes);
      if (!got) return got.error();
      if (!*got) {
        auto more = next_file();
        if (!more) return more.error();
        if (!*more) return std::optional<Mark>();
        continue;
      }
      if (part != Part::mark) {
        if (auto r = take(part, bytes); !r) return r.error();
        continue;
      }
      Mark mark{};
      Message in(bytes.data(), bytes.size());
      while (in.next()) {
        if (in.wire_type() != Wire::varint) {
          in.skip();
          continue;
        }
        const auto tag = in.tag();
        const auto value = in.get_uint64();
        if (tag == 1) mark.did = static_cast<Did>(value);
        if (tag == 2) mark.monotonic_ns = value;
        if (tag == 3) mark.missed = value;
      }
      was_split_ = mark.did == Did::split;
      if (mark.did == Did::base) {
        if (segments_ > 1) state_->passes.clear();
        has_base_ = true;
        continue;
      }
      if (segments_ > 1 && mark.did == Did::begin) continue;
      if (was_split_ && !later_.empty()) continue;
      return std::optional(mark);
    }
  } catch (const protozero::exception&) {
    return damaged();
  }
}

}  // namespace coretap::record
