#include "tools/syscall/traceloop/report_calls.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/call_formats.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "coretap/flags.hpp"
#include "coretap/report_kind.hpp"
#include "coretap/syscalls.hpp"
#include "kernel/kernel.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/event_trace.hpp"
#include "reports/reporter.hpp"
#include "tools/syscall/traceloop/call_text.hpp"
#include "tools/syscall/traceloop/recorder.hpp"
#include "tools/syscall/traceloop/shown_calls.hpp"
#include "traceloop.skel.h"

namespace coretap {

namespace {

constexpr double kPoll = 0.1;
constexpr std::size_t kMostNames = 1 << 14;             // of calls, in a recording
constexpr std::uint64_t kSlots = 8192;                  // per CPU; default of --size
constexpr ProgramName kCallsUnderWay = progs::on_task;  // the iterator program

/// "42:07.123456789"
std::string since_start(const Session& s, std::uint64_t at) {
  auto ns = at - std::min(at, s.began_ns);
  auto seconds = ns / 1'000'000'000;
  return fmt::format("{:02}:{:02}.{:09}", seconds / 60, seconds % 60, ns % 1'000'000'000);
}

std::string end_words(const record_process_end& end) {
  if (end.oom) return "killed for lack of memory (OOM)";
  auto signal = static_cast<int>(end.code & 0x7f);
  if (signal)
    return fmt::format("killed by {}{}", signal_name(signal),
                       end.code & 0x80 ? " (core dumped)" : "");
  return fmt::format("exit status {}", end.code >> 8 & 0xff);
}

/// The signal with which the user requests a report.
std::vector<int> dump_signals(const Config& config) {
  auto number = config.own<CallSettings>().dump_signal;
  return number ? std::vector<int>{number} : std::vector<int>();
}

/// Shows the calls in the recorders, sorted by their start.
class CallReporter : public Reporter {
 public:
  void configure(Session& s) override {
    slots_ = std::bit_ceil(static_cast<std::uint32_t>(s.config.number("size", kSlots)));
    cpus_ = static_cast<std::uint32_t>(possible_cpus());
    set_variable(s, "record_slots", slots_);
    set_variable(s, "record_cpus", cpus_);
    auto& cgroups = s.config.own<CallSettings>().cgroups;
    for (auto& c : cgroups) names_.insert_or_assign(c.id, c.name);
    if (names_.empty()) names_.emplace(0, "");
    keeps_ = keeps_calls(s.config);
    signals_ = dump_signals(s.config);
    if (replaying()) return;
    choose_cgroups(s, cgroups);
    if (cgroups.empty() && !s.config.filters_tasks())
      set_variable(s, "own_tgid", static_cast<std::uint64_t>(getpid()));
    tell_texts(s);
  }

  Result<void> make_maps(Session& s) override {
    auto* map = s.map(maps::recorders);
    if (!map) return {};
    auto sample = Recorder::configure(map, names_.size(), slots_, cpus_);
    if (!sample) return sample.error();
    sample_ = std::move(*sample);
    return {};
  }

  Result<void> open(Session& s) override {
    sample_.reset();
    if (auto r = trace_.open(s); !r) return r;
    if (replaying()) return {};
    shown_until_ns_ = monotonic_ns();
    reads_under_way_ = s.plan.has(kCallsUnderWay);
    if (reads_under_way_)
      if (auto r = s.source->open_iterator(kCallsUnderWay); !r) return r;
    for (auto& [key, name] : names_)
      if (auto r = recorders_[key].open(s.map(maps::recorders), key, slots_, cpus_); !r) return r;
    return {};
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line(
          "time,monotonic_ns,cgroup,cpu,pid,tid,comm,syscall,abi,arguments,result,error,latency_ns");
  }

  bool periodic() const override { return false; }
  double poll_seconds() const override { return keeps_ ? 0 : kPoll; }
  void poll(Session& s) override {
    if (!keeps_) show_new(s);
    trace_.check(s);
  }
  bool keeps_file() const override { return static_cast<bool>(trace_); }
  Result<void> finish(Session& s) override {
    trace_.finish(s);
    return {};
  }
  std::vector<int> signals() const override { return signals_; }
  void signalled(Session& s, int) override {
    dump_all(s, "requested");
    s.out.flush();
  }

  // Records are ends of processes, as requested, and, of a recording, calls that were shown.
  void record(Session& s, const void* data, std::size_t size) override {
    if (replaying()) {
      const auto bytes = report_record(data, size);
      if (auto shown = bytes ? ShownCalls::of(*bytes) : std::nullopt) show(s, *shown);
      return;
    }
    if (size < sizeof(record_process_end)) return;
    auto& end = *static_cast<const record_process_end*>(data);
    if (recorders_.contains(end.recorder))
      dump(s, end.recorder, under_way(s)[end.recorder],
           {.why = end_words(end),
            .ended = ShownCalls::Ended{end.tgid, text_in(end.comm)},
            .now_ns = end.head.time_ns});
  }

  void report(Session& s) override {
    if (replaying()) return;
    if (!keeps_)
      show_new(s);
    else if (s.config.given("dump-on-exit"))
      dump_all(s, "tracing ends");
  }

 private:
  static void choose_cgroups(Session& s, const std::vector<RecordedCgroup>& cgroups) {
    if (cgroups.empty()) return;
    set_variable(s, "by_cgroup", 1);
    auto levels = cgroup_levels(cgroups);
    set_variable(s, "cgroup_levels", levels.size());
    set_variable(s, "cgroup_level", levels.data(), levels.size() * sizeof levels[0]);
  }

  void tell_texts(Session& s) {
    if (auto all = formats_.read(); !all && !formats_.empty())
      s.limits.push_back(fmt::format("arguments of some calls have no names: {}: {}",
                                     all.error().what, all.error().why));
    if (formats_.empty())
      s.limits.emplace_back("arguments are shown as numbers: without tracefs they have no names");
    std::uint8_t texts[CALLS] = {};
    for (std::uint32_t index = 0; index < CALLS; index++) {
      auto* arguments = formats_.find(index);
      if (!arguments) continue;
      for (std::size_t i = 0; i < std::min<std::size_t>(arguments->size(), CALL_ARGS); i++)
        if ((*arguments)[i].is_text()) texts[index] |= static_cast<std::uint8_t>(1 << i);
      auto name = syscall_name(index);
      if (texts[index] && (name == "execve" || name == "execveat")) texts[index] |= CALL_TEXT_EARLY;
    }
    set_variable(s, "call_texts", texts, sizeof texts);
  }

  static void by_begin(std::vector<Call>& calls) {
    std::stable_sort(calls.begin(), calls.end(),
                     [](auto& a, auto& b) { return a.begin() < b.begin(); });
  }

  std::vector<Call> take(Recorder& recorder) {
    std::vector<Call> calls;
    int cpu = 0;
    for (auto& segment : recorder.segments()) {
      segment.read([&](auto& slots) { calls.push_back({cpu, CallRecord::of(slots)}); });
      cpu++;
    }
    return calls;
  }

  /// Continuous output.
  void show_new(Session& s) {
    const auto now = monotonic_ns();
    for (auto& [key, recorder] : recorders_) {
      ShownCalls batch{.now_ns = now, .calls = take(recorder)};
      by_begin(batch.calls);
      finish(s, key, batch);
    }
    shown_until_ns_ = now;
  }

  /// Completes the calls of a recorder, and shows them.
  void finish(Session& s, std::uint64_t key, ShownCalls& batch) {
    const auto all = recorders_[key].overwritten();
    batch.recorder = names_[key];
    batch.since_ns = shown_until_ns_;
    batch.overwritten = all - std::exchange(overwritten_[key], all);
    if (batch.calls.empty() && !batch.overwritten && !batch.why) return;
    show(s, batch);
    if (s.recorder) s.source->keep_record(batch.packed());
  }

  /// The calls in progress, for all recorders.
  std::map<std::uint64_t, std::vector<Call>> under_way(const Session& s) const {
    std::map<std::uint64_t, std::vector<Call>> all;
    if (!reads_under_way_) return all;
    record_slot slots[2];
    auto read = s.source->pass(kCallsUnderWay, sizeof slots);
    if (!read) {
      s.note("calls that have not ended are not shown", read.error());
      return all;
    }
    auto& bytes = *read;
    for (std::size_t at = 0; at + sizeof slots <= bytes.size(); at += sizeof slots) {
      memcpy(slots, bytes.data() + at, sizeof slots);
      all[slots[0].seq].push_back(
          {-1, CallRecord::of({slots, slots + (slots[0].slots > 1 ? 2 : 1)})});
    }
    return all;
  }

  void dump_all(Session& s, const std::string& why) {
    auto unfinished = under_way(s);
    const auto now = monotonic_ns();
    for (auto& [key, recorder] : recorders_)
      dump(s, key, unfinished[key], {.why = why, .now_ns = now});
    shown_until_ns_ = now;
  }

  void dump(Session& s, std::uint64_t key, const std::vector<Call>& unfinished, ShownCalls batch) {
    batch.calls = take(recorders_[key]);
    batch.calls.insert(batch.calls.end(), unfinished.begin(), unfinished.end());
    by_begin(batch.calls);
    finish(s, key, batch);
    s.out.flush();
  }

  /// Of continuous output, calls that were overwritten before they were read are lost.
  void show(Session& s, const ShownCalls& batch) {
    s.ledger.count[batch.why ? LEDGER_OVERWRITTEN : LEDGER_LOST] += batch.overwritten;
    trace_.lost(batch.since_ns, batch.calls.empty() ? batch.now_ns : batch.calls.front().begin(),
                batch.overwritten);
    if (batch.why) head(s, batch);
    for (auto& c : batch.calls) line(s, batch, c);
  }

  static void head(Session& s, const ShownCalls& batch) {
    const auto now = batch.now_ns;
    auto& end = batch.ended;
    if (s.config.format == OutputFormat::json) {
      JsonLine line("dump", s.tool.name);
      line.text("time", iso_time(now)).number("monotonic_ns", now);
      cgroup(line, batch);
      line.text("reason", *batch.why).number_if(end.has_value(), "pid", end ? end->pid : 0);
      line.text_if(end.has_value(), "comm", end ? end->comm : std::string());
      line.number("calls", batch.calls.size()).number("overwritten", batch.overwritten);
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::text) {
      auto who = end ? fmt::format("{}[{}]: ", printable(end->comm), end->pid) : "";
      auto where = batch.recorder.empty() ? "" : printable(batch.recorder) + ": ";
      s.out.line(fmt::format(
          "==> {} {}{}{}: {} calls{} <==", since_start(s, now), where, who, printable(*batch.why),
          batch.calls.size(),
          batch.overwritten ? fmt::format(", {} older ones overwritten", batch.overwritten) : ""));
    }
  }

  static void cgroup(JsonLine& line, const ShownCalls& batch) {
    line.text_if(!batch.recorder.empty(), "cgroup", batch.recorder);
  }

  const CallNames& names_of(std::uint32_t index) {
    auto known = calls_.find(index);
    if (known != calls_.end()) return known->second;
    if (calls_.size() >= kMostNames) calls_.clear();
    const auto bytes = recalled(Ask::syscall, std::to_string(index), [&] {
      CallNames names{syscall_name(index), std::string(syscall_abi(index))};
      if (auto* arguments = formats_.find(index)) names.arguments = *arguments;
      return names.packed();
    });
    return calls_.emplace(index, CallNames::of(bytes)).first->second;
  }

  void line(Session& s, const ShownCalls& batch, const Call& c) {
    s.ledger.shown++;
    if (trace_) trace(s, batch, c);
    if (s.config.format == OutputFormat::json)
      json(s, batch, c);
    else if (s.config.format == OutputFormat::csv)
      csv(s, batch, c);
    else
      text(s, c);
  }

  void text(Session& s, const Call& c) {
    auto& call = c.record.call;
    auto cpu = c.cpu < 0 ? std::string("cpu#-") : fmt::format("cpu#{}", c.cpu);
    auto thread = call.tid == call.tgid ? "" : fmt::format(" tid {}", call.tid);
    auto words = call_text(c.record, names_of(call.index));
    std::string end;
    if (c.record.unfinished())
      end = " ...";
    else if (c.record.headless())
      end = fmt::format(" = {}", result_text(call.result));
    else
      end = fmt::format(" = {} <{:.6f}>", result_text(call.result),
                        static_cast<double>(call.end_ns - call.start_ns) / 1e9);
    s.out.line(fmt::format("{} {} pid {}{} [{}] {}{}{}", since_start(s, c.begin()), cpu, call.tgid,
                           thread, printable(text_in(call.comm)), c.record.headless() ? "..." : "",
                           words, end));
  }

  void json(Session& s, const ShownCalls& batch, const Call& c) {
    auto& call = c.record.call;
    JsonLine line("call", s.tool.name);
    line.text("time", iso_time(c.begin())).number("monotonic_ns", c.begin());
    cgroup(line, batch);
    line.number_if(c.cpu >= 0, "cpu", static_cast<std::uint64_t>(c.cpu));
    line.number("pid", call.tgid).number("tid", call.tid).text("comm", text_in(call.comm));
    auto& names = names_of(call.index);
    line.text("syscall", names.name).text("abi", names.abi);
    line.key("arguments").begin_object();
    auto* arguments = names.arguments ? &*names.arguments : nullptr;
    std::array<std::uint64_t, CALL_ARGS> values;
    std::copy_n(call.args, CALL_ARGS, values.begin());
    auto used = used_arguments(names.name, arguments, values);
    for (std::size_t i = 0; i < CALL_ARGS; i++) {
      if (!(used >> i & 1)) continue;
      auto name = arguments ? (*arguments)[i].name : fmt::format("arg{}", i);
      auto& text = c.record.texts[i];
      if (text && text->readable)
        line.text(name, text->bytes);
      else
        line.number(name, call.args[i]);
    }
    line.end_object();
    line.key("result");
    if (c.ended())
      line.integer(call.result);
    else
      line.null();
    line.text_if(c.error(), "error", error_name(c.error()));
    line.number_if(c.timed(), "latency_ns", call.end_ns - call.start_ns);
    s.out.line(line.finish());
  }

  void csv(Session& s, const ShownCalls& batch, const Call& c) {
    auto& call = c.record.call;
    auto& names = names_of(call.index);
    s.out.line(fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{}", iso_time(c.begin()), c.begin(),
        csv_field(batch.recorder), c.cpu < 0 ? "" : std::to_string(c.cpu), call.tgid, call.tid,
        csv_field(text_in(call.comm)), csv_field(names.name), csv_field(names.abi),
        csv_field(call_text(c.record, names)), c.ended() ? std::to_string(call.result) : "",
        c.error() ? error_name(c.error()) : "",
        c.timed() ? std::to_string(call.end_ns - call.start_ns) : ""));
  }

  void trace(Session& s, const ShownCalls& batch, const Call& c) {
    auto& call = c.record.call;
    auto& names = names_of(call.index);
    const auto comm = text_in(call.comm), words = call_text(c.record, names),
               error = c.error() ? error_name(c.error()) : std::string();
    TracedEvent e{.begin_ns = c.begin(),
                  .end_ns = c.timed() ? call.end_ns : c.begin(),
                  .pid = call.tgid,
                  .tid = call.tid,
                  .comm = comm,
                  .name = names.name};
    e.arguments = {{"call", std::string_view(words)}};
    if (c.ended()) {
      e.arguments.push_back({"result", std::int64_t{call.result}});
      if (!error.empty()) e.arguments.push_back({"error", std::string_view(error)});
      e.arguments.push_back({"cpu", static_cast<std::uint64_t>(c.cpu)});
    } else {
      e.end_ns = std::max(batch.now_ns, e.begin_ns);
      e.arguments.push_back({"unfinished", true});
    }
    trace_.add(s, e);
  }

  CallFormats formats_;
  std::unordered_map<std::uint32_t, CallNames> calls_;  ///< those that were shown, by index
  EventTrace trace_;
  std::uint64_t shown_until_ns_ = 0;  ///< later calls were not shown yet
  std::uint32_t slots_ = 0, cpus_ = 0;
  bool reads_under_way_ = false;  ///< reads calls in progress
  Fd sample_;                     ///< a recorder's map, as a template until the program is loaded
  std::map<std::uint64_t, std::string> names_;  ///< names of the recorders
  std::map<std::uint64_t, Recorder> recorders_;
  std::map<std::uint64_t, std::uint64_t> overwritten_;  ///< number reported already
  std::vector<int> signals_;
  bool keeps_ = false;  ///< shows calls on request, not as they arrive
};

class CallKind : public ReportKind {
 public:
  std::string_view name() const override { return "recorder"; }
  std::unique_ptr<Reporter> reporter() const override { return std::make_unique<CallReporter>(); }
  bool can_be_recorded() const override { return true; }
  bool argument_names() const override { return true; }
  bool has_events() const override { return true; }
  Result<void> look_up(Config& config) const override {
    return find_cgroups(config.own<CallSettings>().cgroups, config.given("recursive"));
  }
  std::vector<int> early_signals(const Config& config) const override {
    return dump_signals(config);
  }

  static OutputKey result_key() {
    auto k = key("result", "integer or null", "null: it has not ended");
    k.negative = true;
    return k;
  }

  std::vector<JsonKind> json() const override {
    return {
        {"call",
         "one per call",
         {type_key("call"), key("time", "string", "wall clock when it began, ISO 8601 with zone"),
          monotonic_key(),
          key("cgroup", "string or null",
              "cgroup whose recorder it was in; null: there is only one"),
          key("cpu", "integer or null", "CPU where it ended; null: it has not"),
          key("pid", "integer", "process"), key("tid", "integer", "thread"),
          key("comm", "string", "command name of the task"),
          key("syscall", "string", "name of the call"),
          key("abi", "string", "system call table of its number"),
          key("arguments", "object", "by name: strings as text, all others as numbers"),
          result_key(), key("error", "string or null", "errno by its name; null: it did not fail"),
          key("latency_ns", "integer or null", "null: its start or its end was not seen")}},
        {"dump",
         "before the calls of a recorder",
         {type_key("dump"), time_key(), monotonic_key(),
          key("cgroup", "string or null", "cgroup of the recorder; null: there is only one"),
          key("reason", "string", "why it was dumped"),
          key("pid", "integer or null", "process whose exit was the reason"),
          key("comm", "string or null", "its command name"),
          key("calls", "integer", "lines that follow"),
          key("overwritten", "integer", "older calls that were overwritten")}}};
  }

  std::vector<OutputKey> csv() const override {
    auto all = json().front().keys;
    all.erase(all.begin());  // the key "type"
    for (auto& k : all)
      if (k.name == "arguments") k = key("arguments", "string", "the call as in text output");
    return all;
  }

  void manual(Manual& m) const override {
    m.prose(
        "One line per call, in the order in which they began: minutes, seconds and nanoseconds "
        "since tracing began, CPU, process (and thread, if it is another one), command name, the "
        "call with its arguments by name, its result or error, and its time in seconds in angle "
        "brackets. Flags and constants are shown by name as in strace, bits without a name as a "
        "hexadecimal number; JSON has the numbers. A call that has not ended has ... in place of "
        "its result; one whose start was not seen has ... before its name.");
    m.prose(
        "The calls that a recorder holds follow a line ==> ... <== with the cgroup, the reason, "
        "the number of calls, and the number of older ones that were overwritten.");
  }
};

}  // namespace

bool keeps_calls(const Config& config) { return config.holds("dump-on-exit|dump-signal|trigger"); }

std::shared_ptr<const ReportKind> make_kind(CallReport) { return std::make_shared<CallKind>(); }

}  // namespace coretap
