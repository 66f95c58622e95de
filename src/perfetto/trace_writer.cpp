#include "perfetto/trace_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <utility>

#include "coretap/sanitize.hpp"
#include "perfetto/fields.hpp"

namespace coretap::perfetto {

namespace {

constexpr std::size_t kSend = 1 << 16;            // bytes
constexpr std::uint64_t kBundleNs = 100'000'000;  // importers sort all events; this bounds memory
constexpr std::size_t kBundleEvents = 1 << 14;
constexpr std::size_t kMostInterned = 8 << 20;  // bytes of text, and of what it takes to find it
constexpr std::size_t kPerInterned = 128, kLongestInterned = 256;
constexpr std::size_t kMostArguments = 64;
constexpr std::size_t kMostTracks = 1 << 16;
constexpr std::uint32_t kMostCpus = 1024;  // larger numbers end the import

// The upper 8 bits of uuids.
constexpr std::uint64_t kThread = 1, kLost = 5, kProcess = 7;
constexpr std::uint64_t uuid(std::uint64_t kind, std::uint64_t number) {
  return kind << 56 | number;
}

using protozero::pbf_writer;

void append(std::string& column, std::uint64_t number) {
  protozero::add_varint_to_buffer(&column, number);
}

}  // namespace

Track thread_track(std::uint32_t pid, std::uint32_t tid) {
  return {.uuid = uuid(kThread, std::uint64_t{pid} << 24 | tid), .pid = pid, .tid = tid};
}
Track process_track(std::uint32_t pid) { return {.uuid = uuid(kProcess, pid), .pid = pid}; }
std::uint64_t lost_track(std::uint32_t number) { return uuid(kLost, number); }

std::uint32_t printed_state(std::uint32_t state, bool preempted) {
  // include/trace/events/sched.h: __trace_sched_switch_state(), and include/linux/sched.h
  constexpr std::uint32_t kReported = 0x7f, kIdle = 0x402, kIdlePrinted = 0x80, kPreempted = 0x100,
                          kUninterruptible = 2, kAsUninterruptible = 0x1000 | 0x8000;
  if (preempted) return kPreempted;
  if ((state & kIdle) == kIdle) return kIdlePrinted;
  if (state & kAsUninterruptible) return kUninterruptible;
  return std::bit_floor(state & kReported);
}

TraceWriter::TraceWriter(std::uint32_t sequence, Write write)
    : sequence_(sequence), write_(std::move(write)) {}

std::uint64_t TraceWriter::Interned::id(std::string_view text, std::size_t& bytes) {
  auto [at, is_new] = ids.try_emplace(std::string(text), ids.size() + 1);
  if (is_new) {
    fresh.emplace_back(at->second, at->first);
    bytes += text.size() + kPerInterned;
  }
  return at->second;
}

void TraceWriter::send() {
  if (out_.empty()) return;
  write_(out_);
  out_.clear();
}

template <class Fill>
void TraceWriter::packet(Fill fill) {
  {
    pbf_writer trace(out_);
    pbf_writer p(trace, kPacketOfTrace);
    fill(p);
    p.add_uint32(packet::sequence, sequence_);
  }
  if (out_.size() >= kSend) send();
}

void TraceWriter::clocks(const Clocks& now) {
  clocks_ = now;
  packet([&](auto& p) {
    pbf_writer snapshot(p, packet::clock_snapshot);
    for (auto [id, time] : {std::pair(kBoottime, now.boot), std::pair(kMonotonic, now.monotonic),
                            std::pair(kRealtime, now.real)}) {
      pbf_writer clock(snapshot, snapshot::clocks);
      clock.add_uint32(clock::id, id);
      clock.add_uint64(clock::time, time);
    }
    snapshot.add_uint32(snapshot::primary, kBoottime);
  });
}

void TraceWriter::system(const System& system) {
  packet([&](auto& p) {
    pbf_writer info(p, packet::system_info);
    pbf_writer names(info, system::utsname);
    names.add_string(utsname::name, printable(system.name));
    names.add_string(utsname::version, printable(system.version));
    names.add_string(utsname::release, printable(system.release));
    names.add_string(utsname::machine, printable(system.machine));
  });
}

void TraceWriter::begin_part() {
  flush();
  for (auto* names : {&categories_, &event_names_, &argument_names_, &texts_of_arguments_}) {
    names->ids.clear();
    names->fresh.clear();
  }
  interned_bytes_ = 0;
  described_.clear();
  state_cleared_ = false;
}

void TraceWriter::describe(const Track& track) {
  if (interned_bytes_ > kMostInterned || described_.size() >= kMostTracks) begin_part();
  if (!state_cleared_) {
    state_cleared_ = true;
    packet([&](auto& p) {
      p.add_uint32(packet::flags, kStateCleared);
      pbf_writer defaults(p, packet::defaults);
      defaults.add_uint32(packet::timestamp_clock, kMonotonic);
    });
  }
  if (!described_.insert(track.uuid).second) return;
  packet([&](auto& p) {
    pbf_writer to(p, packet::track_descriptor);
    to.add_uint64(track::uuid, track.uuid);
    if (track.parent) to.add_uint64(track::parent, track.parent);
    if (track.tid) {
      pbf_writer thread(to, track::thread);
      thread.add_int32(thread::pid, static_cast<std::int32_t>(track.pid));
      thread.add_int32(thread::tid, static_cast<std::int32_t>(track.tid));
      if (!track.name.empty()) thread.add_string(thread::name, printable(track.name));
    } else if (track.pid) {
      pbf_writer process(to, track::process);
      process.add_int32(process::pid, static_cast<std::int32_t>(track.pid));
      if (!track.name.empty()) process.add_string(process::name, printable(track.name));
    } else {
      to.add_string(track::name, printable(track.name));
    }
    if (!track.unit.empty()) {
      pbf_writer counter(to, track::counter);
      counter.add_string(counter::unit_name, printable(track.unit));
    }
  });
}

template <class Packet>
void TraceWriter::add_interned(Packet& p) {
  const std::pair<Tag, Interned*> all[] = {{interned::categories, &categories_},
                                           {interned::names, &event_names_},
                                           {interned::argument_names, &argument_names_},
                                           {interned::texts, &texts_of_arguments_}};
  if (std::ranges::all_of(all, [](auto& one) { return one.second->fresh.empty(); })) return;
  pbf_writer interned(p, packet::interned);
  for (auto& [tag, names] : all) {
    for (auto& [id, text] : names->fresh) {
      pbf_writer entry(interned, tag);
      entry.add_uint64(entry::id, id);
      entry.add_string(entry::text, text.data(), text.size());
    }
    names->fresh.clear();
  }
}

void TraceWriter::event(const Track& track, std::uint64_t time_ns, unsigned type,
                        const Event* event, const double* value) {
  describe(track);
  std::array<std::uint64_t, kMostArguments> arguments{}, texts{};
  std::uint64_t name = 0, category = 0;
  std::size_t count = 0;
  if (event) {
    name = event_names_.id(printable(event->name), interned_bytes_);
    if (!event->category.empty())
      category = categories_.id(printable(event->category), interned_bytes_);
    count = std::min(event->arguments.size(), kMostArguments);
    for (std::size_t i = 0; i < count; i++) {
      auto& [of, value] = event->arguments[i];
      arguments[i] = argument_names_.id(printable(of), interned_bytes_);
      auto* text = std::get_if<std::string_view>(&value);
      if (text && text->size() <= kLongestInterned)
        texts[i] = texts_of_arguments_.id(printable(*text), interned_bytes_);
    }
  }
  packet([&](auto& p) {
    p.add_uint64(packet::timestamp, time_ns);
    p.add_uint32(packet::flags, kNeedsState);
    add_interned(p);
    pbf_writer to(p, packet::track_event);
    to.add_uint32(event::type, type);
    to.add_uint64(event::track, track.uuid);
    if (value) to.add_double(event::value, *value);
    if (!event) return;
    to.add_uint64(event::name, name);
    if (category) to.add_uint64(event::category, category);
    if (event->flow) to.add_fixed64(event::flows, event->flow);
    if (event->ending_flow) to.add_fixed64(event::ending_flows, event->ending_flow);
    for (std::size_t i = 0; i < count; i++) {
      pbf_writer argument(to, event::arguments);
      argument.add_uint64(argument::name, arguments[i]);
      auto& v = event->arguments[i].value;
      if (auto* n = std::get_if<std::uint64_t>(&v)) argument.add_uint64(argument::number, *n);
      if (auto* n = std::get_if<std::int64_t>(&v)) argument.add_int64(argument::integer, *n);
      if (auto* n = std::get_if<bool>(&v)) argument.add_bool(argument::boolean, *n);
      if (auto* n = std::get_if<double>(&v)) argument.add_double(argument::real, *n);
      if (auto* n = std::get_if<Address>(&v)) argument.add_uint64(argument::address, n->value);
      if (texts[i])
        argument.add_uint64(argument::interned_text, texts[i]);
      else if (auto* text = std::get_if<std::string_view>(&v))
        argument.add_string(argument::text, printable(*text));
    }
  });
}

void TraceWriter::slice(const Track& track, std::uint64_t begin_ns, std::uint64_t end_ns,
                        const Event& event) {
  this->event(track, begin_ns, kBegin, &event);
  this->event(track, std::max(begin_ns, end_ns), kEnd, nullptr);
}

void TraceWriter::instant(const Track& track, std::uint64_t time_ns, const Event& event) {
  this->event(track, time_ns, kInstant, &event);
}

void TraceWriter::count(const Track& track, std::uint64_t time_ns, double value) {
  event(track, time_ns, kCounter, nullptr, &value);
}

void TraceWriter::process(std::uint32_t pid, std::uint32_t parent, std::string_view name) {
  packet([&](auto& p) {
    pbf_writer tree(p, packet::process_tree);
    pbf_writer process(tree, tree::processes);
    process.add_int32(tree_process::pid, static_cast<std::int32_t>(pid));
    process.add_int32(tree_process::parent, static_cast<std::int32_t>(parent));
    process.add_string(tree_process::command, printable(name));
  });
}

void TraceWriter::thread(std::uint32_t tid, std::uint32_t process, std::string_view name) {
  packet([&](auto& p) {
    pbf_writer tree(p, packet::process_tree);
    pbf_writer thread(tree, tree::threads);
    thread.add_int32(tree_thread::tid, static_cast<std::int32_t>(tid));
    thread.add_string(tree_thread::name, printable(name));
    thread.add_int32(tree_thread::tgid, static_cast<std::int32_t>(process));
  });
}

TraceWriter::Name TraceWriter::name(std::string_view task) {
  auto [at, is_new] = names_.try_emplace(std::string(task), static_cast<Name>(texts_.size()));
  if (is_new) texts_.push_back(printable(task));
  return at->second;
}

void TraceWriter::forget_names() {
  flush();
  names_.clear();
  texts_.clear();
}

std::uint32_t TraceWriter::Bundle::index_of(Name name) {
  if (name == last_name) return last_index;
  auto [at, is_new] = index.try_emplace(name, static_cast<std::uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  last_name = name;
  return last_index = at->second;
}

TraceWriter::Bundle& TraceWriter::bundle(std::uint32_t cpu, std::uint64_t time_ns) {
  if (cpu >= bundles_.size()) bundles_.resize(cpu + 1);
  auto& b = bundles_[cpu];
  if (b.events && (b.events >= kBundleEvents || time_ns - b.begin_ns >= kBundleNs))
    write_bundle(cpu, b);
  if (!b.events++) b.begin_ns = time_ns;
  return b;
}

void TraceWriter::switches(std::uint32_t cpu, std::uint64_t time_ns, std::uint32_t state,
                           std::uint32_t next, std::int32_t prio, Name name) {
  if (cpu >= kMostCpus) return;
  auto& b = bundle(cpu, time_ns);
  // The importer reads these times as of the clock that does not stop in a suspend.
  auto time = std::max(time_ns + (clocks_.boot - clocks_.monotonic), b.last_switch);
  append(b.switch_time, time - b.last_switch);
  b.last_switch = time;
  append(b.switch_state, state);
  append(b.switch_pid, next);
  append(b.switch_prio, static_cast<std::uint64_t>(std::int64_t{prio}));
  append(b.switch_name, b.index_of(name));
}

void TraceWriter::wakes(std::uint32_t cpu, std::uint64_t time_ns, std::uint32_t tid,
                        std::uint32_t target_cpu, std::int32_t prio, Name name,
                        std::uint32_t waker) {
  if (cpu >= kMostCpus) return;
  auto& b = bundle(cpu, time_ns);
  auto time = std::max(time_ns + (clocks_.boot - clocks_.monotonic), b.last_waking);
  append(b.waking_time, time - b.last_waking);
  b.last_waking = time;
  append(b.waking_pid, tid);
  append(b.waking_cpu, target_cpu);
  append(b.waking_prio, static_cast<std::uint64_t>(std::int64_t{prio}));
  append(b.waking_name, b.index_of(name));
  append(b.waking_flags, waker);
}

void TraceWriter::write_bundle(std::uint32_t cpu, Bundle& b) {
  packet([&](auto& p) {
    pbf_writer to(p, packet::ftrace_events);
    to.add_uint32(bundle::cpu, cpu);
    pbf_writer events(to, bundle::sched);
    for (auto name : b.names) events.add_string(sched::names, texts_[name]);
    for (auto& [tag, column] : {std::pair(sched::switch_time, &b.switch_time),
                                {sched::switch_state, &b.switch_state},
                                {sched::switch_pid, &b.switch_pid},
                                {sched::switch_prio, &b.switch_prio},
                                {sched::switch_name, &b.switch_name},
                                {sched::waking_time, &b.waking_time},
                                {sched::waking_pid, &b.waking_pid},
                                {sched::waking_cpu, &b.waking_cpu},
                                {sched::waking_prio, &b.waking_prio},
                                {sched::waking_name, &b.waking_name},
                                {sched::waking_flags, &b.waking_flags}}) {
      if (!column->empty()) events.add_bytes(tag, *column);
      column->clear();
    }
  });
  b.last_switch = b.last_waking = 0;
  b.names.clear();
  b.index.clear();
  b.events = 0;
  b.last_name = UINT32_MAX;
}

void TraceWriter::flush() {
  for (std::uint32_t cpu = 0; cpu < bundles_.size(); cpu++)
    if (bundles_[cpu].events) write_bundle(cpu, bundles_[cpu]);
  send();
}

}  // namespace coretap::perfetto
