#include "tools/syscall/traceloop/report_calls.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>

#include <fmt/format.h>

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
#include "traceloop.skel.h"

namespace coretap {

namespace {

constexpr double kPoll = 0.1;
constexpr std::uint64_t kSlots = 8192;                  // per CPU; default of --size
constexpr ProgramName kCallsUnderWay = progs::on_task;  // the iterator program

struct Call {
  int cpu;  ///< -1: unknown
  CallRecord record;

  std::uint64_t begin() const {
    return record.call.start_ns ? record.call.start_ns : record.call.end_ns;
  }
  bool ended() const { return !record.unfinished(); }
  bool timed() const { return ended() && !record.headless(); }
  int error() const { return ended() ? result_error(record.call.result) : 0; }
};

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
    choose_cgroups(s, cgroups);
    if (cgroups.empty() && !s.config.filters_tasks())
      set_variable(s, "own_tgid", static_cast<std::uint64_t>(getpid()));
    tell_texts(s);
    keeps_ = keeps_calls(s.config);
    signals_ = dump_signals(s.config);
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

  // The only records are process exits, as requested.
  void record(Session& s, const void* data, std::size_t size) override {
    if (size < sizeof(record_process_end)) return;
    auto& end = *static_cast<const record_process_end*>(data);
    if (recorders_.contains(end.recorder))
      dump(s, end.recorder, under_way(s)[end.recorder], end_words(end), &end);
  }

  void report(Session& s) override {
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

  /// Continuous output: calls that were overwritten before they were read are lost.
  void show_new(Session& s) {
    for (auto& [key, recorder] : recorders_) {
      auto calls = take(recorder);
      by_begin(calls);
      count_overwritten(s, key, calls, LEDGER_LOST);
      for (auto& c : calls) line(s, key, c);
    }
    shown_until_ns_ = monotonic_ns();
  }

  /// `calls`: those that were not.
  std::uint64_t count_overwritten(Session& s, std::uint64_t key, const std::vector<Call>& calls,
                                  ledger_cause cause) {
    auto now = recorders_[key].overwritten();
    auto since = now - overwritten_[key];
    overwritten_[key] = now;
    s.ledger.count[cause] += since;
    trace_.lost(shown_until_ns_, calls.empty() ? monotonic_ns() : calls.front().begin(), since);
    return since;
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
    for (auto& [key, recorder] : recorders_) dump(s, key, unfinished[key], why, nullptr);
    shown_until_ns_ = monotonic_ns();
  }

  void dump(Session& s, std::uint64_t key, const std::vector<Call>& unfinished,
            const std::string& why, const record_process_end* end) {
    auto calls = take(recorders_[key]);
    calls.insert(calls.end(), unfinished.begin(), unfinished.end());
    by_begin(calls);
    auto overwritten = count_overwritten(s, key, calls, LEDGER_OVERWRITTEN);
    auto now = end ? end->head.time_ns : monotonic_ns();
    auto comm = end ? text_in(end->comm) : std::string();
    if (s.config.format == OutputFormat::json) {
      JsonLine line("dump", s.tool.name);
      line.text("time", iso_time(now)).number("monotonic_ns", now);
      cgroup(line, key);
      line.text("reason", why).number_if(end, "pid", end ? end->tgid : 0);
      line.text_if(end, "comm", comm);
      line.number("calls", calls.size()).number("overwritten", overwritten);
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::text) {
      auto who = end ? fmt::format("{}[{}]: ", printable(comm), end->tgid) : "";
      auto where = names_[key].empty() ? "" : printable(names_[key]) + ": ";
      s.out.line(fmt::format(
          "==> {} {}{}{}: {} calls{} <==", since_start(s, now), where, who, why, calls.size(),
          overwritten ? fmt::format(", {} older ones overwritten", overwritten) : ""));
    }
    for (auto& c : calls) line(s, key, c);
    s.out.flush();
  }

  void cgroup(JsonLine& line, std::uint64_t key) {
    line.text_if(!names_[key].empty(), "cgroup", names_[key]);
  }

  void line(Session& s, std::uint64_t key, const Call& c) {
    s.ledger.shown++;
    if (trace_) trace(s, c);
    if (s.config.format == OutputFormat::json)
      json(s, key, c);
    else if (s.config.format == OutputFormat::csv)
      csv(s, key, c);
    else
      text(s, c);
  }

  void text(Session& s, const Call& c) const {
    auto& call = c.record.call;
    auto cpu = c.cpu < 0 ? std::string("cpu#-") : fmt::format("cpu#{}", c.cpu);
    auto thread = call.tid == call.tgid ? "" : fmt::format(" tid {}", call.tid);
    auto words = call_text(c.record, formats_.find(call.index));
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

  void json(Session& s, std::uint64_t key, const Call& c) {
    auto& call = c.record.call;
    JsonLine line("call", s.tool.name);
    line.text("time", iso_time(c.begin())).number("monotonic_ns", c.begin());
    cgroup(line, key);
    line.number_if(c.cpu >= 0, "cpu", static_cast<std::uint64_t>(c.cpu));
    line.number("pid", call.tgid).number("tid", call.tid).text("comm", text_in(call.comm));
    line.text("syscall", syscall_name(call.index)).text("abi", syscall_abi(call.index));
    line.key("arguments").begin_object();
    auto* arguments = formats_.find(call.index);
    std::array<std::uint64_t, CALL_ARGS> values;
    std::copy_n(call.args, CALL_ARGS, values.begin());
    auto used = used_arguments(syscall_name(call.index), arguments, values);
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

  void csv(Session& s, std::uint64_t key, const Call& c) {
    auto& call = c.record.call;
    s.out.line(fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{}", iso_time(c.begin()), c.begin(),
        csv_field(names_[key]), c.cpu < 0 ? "" : std::to_string(c.cpu), call.tgid, call.tid,
        csv_field(text_in(call.comm)), syscall_name(call.index), syscall_abi(call.index),
        csv_field(call_text(c.record, formats_.find(call.index))),
        c.ended() ? std::to_string(call.result) : "", c.error() ? error_name(c.error()) : "",
        c.timed() ? std::to_string(call.end_ns - call.start_ns) : ""));
  }

  void trace(Session& s, const Call& c) {
    auto& call = c.record.call;
    const auto comm = text_in(call.comm), name = syscall_name(call.index),
               words = call_text(c.record, formats_.find(call.index)),
               error = c.error() ? error_name(c.error()) : std::string();
    TracedEvent e{.begin_ns = c.begin(),
                  .end_ns = c.timed() ? call.end_ns : c.begin(),
                  .pid = call.tgid,
                  .tid = call.tid,
                  .comm = comm,
                  .name = name};
    e.arguments = {{"call", std::string_view(words)}};
    if (c.ended()) {
      e.arguments.push_back({"result", std::int64_t{call.result}});
      if (!error.empty()) e.arguments.push_back({"error", std::string_view(error)});
      e.arguments.push_back({"cpu", static_cast<std::uint64_t>(c.cpu)});
    } else {
      e.end_ns = std::max(monotonic_ns(), e.begin_ns);
      e.arguments.push_back({"unfinished", true});
    }
    trace_.add(s, e);
  }

  CallFormats formats_;
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
