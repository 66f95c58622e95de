#include "reports/event_trace.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "program/session.hpp"
#include "text/names.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostLanes = 64, kMostThreads = 1 << 16, kMostSlices = 64;
constexpr std::uint64_t kLane = 16, kTool = 17;  // upper 8 bits of uuids
constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;

std::uint64_t uuid(std::uint64_t kind, std::uint64_t of, const perfetto::TracePart* part) {
  auto mixed = (of + (part ? part->number : 0)) * kOdd;
  mixed = (mixed ^ mixed >> 32) * kOdd;
  return kind << 56 | mixed >> 8;
}

std::optional<std::uint64_t> number_in(const Value& value) {
  if (auto* n = std::get_if<std::uint64_t>(&value)) return *n;
  if (auto* n = std::get_if<std::int64_t>(&value); n && *n >= 0)
    return static_cast<std::uint64_t>(*n);
  return {};
}

/// Has it few values, which are words?
bool names_kinds(const Field& f) {
  using enum Format::Kind;
  if (f.format.kind == error) return false;
  return f.values == Values::bounded || f.format.kind == enumerator || f.format.kind == syscall ||
         f.format.kind == rwbs || f.format.kind == target;
}

}  // namespace

bool SliceNest::take(std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (begin_ns < not_before_) return false;
  auto last = outermost_.end();
  // At equal times importers take the order of the file: an outer slice has to begin earlier.
  while (last != outermost_.begin() && std::prev(last)->end > begin_ns) {
    --last;
    if (last->begin <= begin_ns || last->end > end_ns) return false;
  }
  outermost_.erase(last, outermost_.end());
  outermost_.push_back({begin_ns, end_ns});
  if (outermost_.size() > kMostSlices) {
    not_before_ = outermost_.front().end;
    outermost_.erase(outermost_.begin());
  }
  return true;
}

const Field* TracedFields::find(std::string_view key) const {
  auto found = std::ranges::find(fields_, key, &Field::key);
  return found == fields_.end() ? nullptr : &*found;
}

void TracedFields::choose(const Session& s, const std::vector<Field>& fields, std::string_view span,
                          bool from_begin) {
  for (auto& f : fields)
    if (f.read && !f.table_only && s.config.holds(f.only_with)) fields_.push_back(f);
  pid_ = find("pid");
  tid_ = find("tid");
  comm_ = find("comm");
  span_ = find(span);
  from_begin_ = from_begin;
  auto named = std::ranges::find_if(fields_, names_kinds);
  if (named != fields_.end()) named_by_ = &*named;
}

TracedEvent TracedFields::read(const Session& s, std::uint64_t time_ns, const void* record) {
  TracedEvent e{.begin_ns = time_ns, .end_ns = time_ns};
  texts_.clear();
  texts_.reserve(fields_.size());  // arguments refer to them
  for (auto& f : fields_) {
    auto value = f.read(record, s.names.context);
    const auto number = number_in(value);
    if (&f == pid_) {
      e.pid = number;
      continue;
    }
    if (&f == tid_) {
      e.tid = number;
      continue;
    }
    auto add = [&](auto v) { e.arguments.push_back({f.key, v}); };
    auto add_text = [&](std::string text) {
      add(std::string_view(texts_.emplace_back(std::move(text))));
      if (&f == comm_) e.comm = texts_.back();
      if (&f == named_by_) e.name = texts_.back();
    };
    if (&f == span_ && number) {
      if (from_begin_)
        e.end_ns = time_ns + std::min(*number, UINT64_MAX - time_ns);
      else
        e.begin_ns = time_ns - std::min(*number, time_ns);
    }
    auto* i = std::get_if<std::int64_t>(&value);
    auto* n = std::get_if<std::uint64_t>(&value);
    if ((n || i) && names_things(f.format)) {
      add_text(s.names.name(f.format, n ? *n : static_cast<std::uint64_t>(*i)));
    } else if ((n || i) && f.format.kind == Format::thousandths) {
      add((n ? static_cast<double>(*n) : static_cast<double>(*i)) / 1e3);
    } else if (n && f.format.kind == Format::pointer) {
      if (!hidden(f.format, *n, s.names)) add(perfetto::Address{*n});
    } else if (n) {
      add(*n);
    } else if (i) {
      add(*i);
    } else if (auto* d = std::get_if<double>(&value)) {
      add(*d);
    } else if (auto* b = std::get_if<bool>(&value)) {
      add(*b);
    } else if (auto* text = std::get_if<std::string>(&value)) {
      add_text(std::move(*text));
    } else if (auto* frames = std::get_if<Frames>(&value)) {
      if (!frames->empty()) add_text(folded(*frames));
    } else if (auto* words = std::get_if<TextList>(&value)) {
      add_text(std::move(words->line));
    }
  }
  return e;
}

Result<void> EventTrace::open(Session& s) {
  part_ = s.trace_part;
  const bool writes = part_ || !s.config.files.perfetto.empty();
  if (!writes && !s.recorder) return {};
  clocks_ = perfetto::read_clocks();
  // Readings differ by nanoseconds: a timeline of several recordings has none of theirs.
  if (!part_) clocks_ = perfetto::recorded_clocks(clocks_);
  if (!writes) return {};  // a trace may be made of the recording later
  tool_ = s.tool.name;
  if (part_)
    file_.open_part(part_->file);
  else
    file_.open(s.config.files.perfetto);
  if (file_.failed()) return *file_.failed();
  // At the end, in a directory that may belong to another user.
  if (file_.is_renamed()) s.retained.add({Capability::dac_override, Capability::fowner});
  writer_.emplace(part_ ? part_->number + 1 : 1,
                  [this](std::string_view bytes) { file_.add(bytes); });
  checked_ns_ = clocks_.monotonic;
  writer_->clocks(clocks_);
  writer_->system(perfetto::this_system());
  return {};
}

/// The track of the event's thread or process, or else of the tool.
perfetto::Track EventTrace::owner(const TracedEvent& e) {
  constexpr std::uint64_t kMostIds = 1 << 24;
  auto id = [](auto& number) {
    return static_cast<std::uint32_t>(number && *number < kMostIds ? *number : 0);
  };
  const auto pid = id(e.pid), tid = id(e.tid);
  if (!pid) return {.uuid = uuid(kTool, 0, part_), .name = tool_};
  auto process = perfetto::process_track(pid), thread = perfetto::thread_track(pid, tid);
  process.name = e.comm;
  auto& known = threads_[tid ? thread.uuid : process.uuid];
  const auto comm = std::hash<std::string_view>()(e.comm) | 1;
  if (std::exchange(known.comm, comm) != comm) {
    if (!tid || tid == pid) writer_->describe(process);
    if (tid) writer_->thread(tid, pid, e.comm);
  }
  return tid ? thread : process;
}

/// The first one is the track itself, unless other tools have slices there, too.
perfetto::Track EventTrace::lane(const perfetto::Track& of, std::size_t number) const {
  if (!number && (!part_ || !of.pid)) return of;
  return {.uuid = uuid(kLane, of.uuid + (generation_ * kMostLanes + number) * kOdd, part_),
          .name = tool_,
          .parent = of.uuid};
}

void EventTrace::add(Session& s, const TracedEvent& e) {
  if (!writer_ || file_.failed()) return;
  if (replaying()) check(s);
  newest_ns_ = std::max(newest_ns_, e.end_ns);
  if (threads_.size() >= kMostThreads) {
    threads_.clear();
    forgotten_ns_ = newest_ns_;
    generation_++;
  }
  const auto of = owner(e);
  auto number = kMostLanes;
  if (e.begin_ns < e.end_ns) {
    auto& lanes = threads_[of.uuid].lanes;
    if (lanes.empty()) lanes.emplace_back(forgotten_ns_);
    number = 0;
    while (number < lanes.size() && !lanes[number].take(e.begin_ns, e.end_ns)) number++;
    if (number == lanes.size() && number < kMostLanes)
      lanes.emplace_back().take(e.begin_ns, e.end_ns);
  }
  const auto to = lane(of, number == kMostLanes ? 0 : number);
  if (to.parent) writer_->describe(of);
  auto name = tool_;
  if (!e.name.empty()) name += fmt::format(" {}", e.name);
  const perfetto::Event event{.name = name, .arguments = e.arguments, .category = tool_};
  if (number < kMostLanes)
    writer_->slice(to, e.begin_ns, e.end_ns, event);
  else  // a moment, or more at once than there are lanes
    writer_->instant(to, e.end_ns, event);
  tell(s);
}

void EventTrace::lost(std::uint64_t from_ns, std::uint64_t until_ns, std::uint64_t count) {
  if (!writer_ || !count) return;
  const perfetto::Argument arguments[] = {{"events", count}, {"tool", std::string_view(tool_)}};
  const auto text = fmt::format("{} events of {} lost", count, tool_);
  from_ns = std::min(from_ns, until_ns);
  if (!gaps_.take(from_ns, until_ns)) from_ns = until_ns;
  writer_->slice(
      {.uuid = perfetto::lost_track(part_ ? part_->number : 0), .name = perfetto::kLostTrack},
      from_ns, until_ns, {.name = text, .arguments = arguments, .category = tool_});
}

void EventTrace::check(Session& s) {
  if (!writer_) return;
  std::uint64_t counts[LEDGER_CAUSES] = {};
  s.source->add_ledger(counts);
  const auto now = std::max(monotonic_ns(), newest_ns_);  // a shown recording's clock may be behind
  const auto lost_before = std::exchange(known_lost_, counts[LEDGER_LOST]);
  lost(checked_ns_, now, known_lost_ - lost_before);
  checked_ns_ = now;
  if (part_) return;
  auto clocks = replaying() ? perfetto::recorded_clocks(clocks_) : perfetto::read_clocks();
  if (perfetto::differ(clocks_, clocks))
    writer_->clocks(clocks_ = replaying() ? clocks : perfetto::recorded_clocks(clocks));
  tell(s);
}

void EventTrace::tell(Session& s) {
  if (!file_.failed() || std::exchange(told_, true)) return;
  s.incomplete = true;
  s.note("the trace for Perfetto has ended", *file_.failed());
}

void EventTrace::finish(Session& s) {
  if (!writer_) return;
  const auto since = checked_ns_;
  check(s);
  lost(since, checked_ns_, s.ledger.unread);
  writer_->flush();
  file_.finish();
  tell(s);
}

}  // namespace coretap
