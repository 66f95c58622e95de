#include "run/run.hpp"

#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/loop.hpp"
#include "base/memory.hpp"
#include "base/recall.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/clock.hpp"
#include "coretap/kernel.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "coretap/version.hpp"
#include "metrics/exporter.hpp"
#include "program/attach.hpp"
#include "program/each_cpu.hpp"
#include "program/filters.hpp"
#include "program/load.hpp"
#include "program/maps.hpp"
#include "program/needed_capabilities.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/target_attach.hpp"
#include "program/variables.hpp"
#include "record/recorder.hpp"
#include "record/replay.hpp"
#include "reports/reporter.hpp"
#include "run/command.hpp"
#include "run/run_words.hpp"
#include "run/trace_loop.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

Result<void> check_rights(Kernel& kernel) {
  if (auto missing = missing_capabilities(); !missing.empty())
    return Error{"not allowed to trace", fmt::format("missing {}", missing),
                 "run as root (sudo), or grant those capabilities", kUnsupported};
  if (!kernel.has_btf() && kernel.types_error() != ENOENT)
    return system_error("cannot read this kernel's type information", kernel.types_error());
  if (!kernel.has_btf())
    return Error{"this kernel does not provide its type information",
                 "there is no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)",
                 "use a kernel built with BTF, as in all current distributions", kUnsupported};
  return read_cpus();
}

void configure(Session& s, Reporter& reporter) {
  for (auto& edit : s.config.edits())
    edit_rodata(s, edit.target.offset, &edit.value, std::min<std::size_t>(edit.target.size, 8));
  // Facts about this kernel's tracepoints, which programs request by the name of a variable.
  constexpr std::string_view kArgs = "tp_args_";
  each_constant(s, [&](std::string_view name, std::uint32_t offset, std::uint32_t size) {
    if (!name.starts_with(kArgs)) return;
    auto fact = static_cast<std::uint64_t>(
        std::max(0, s.kernel.tracepoint_args(name.substr(kArgs.size()))));
    edit_rodata(s, offset, &fact, size);
  });
  auto only = [&](const std::string& filter, std::optional<std::uint32_t> number) {
    if (number && set_variable(s, filter, *number)) set_variable(s, filter + "_on", 1);
  };
  only("filter_disk", s.config.places.disk);
  only("filter_cpu", s.config.places.cpu);
  set_variable(s, "own_tgid", static_cast<std::uint64_t>(getpid()));
  // Programs can handle sets of at most 1024 CPUs.
  auto cpu_words = static_cast<std::uint64_t>((possible_cpus() + 63) / 64);
  set_variable(s, "cpu_words", cpu_words <= 16 ? cpu_words : 0);
  set_variable(s, "page_bytes", page_bytes());
  reporter.configure(s);
}

std::set<std::string_view> own_programs(const Session& s) {
  std::set<std::string_view> own;
  if (!s.config.command.empty()) own.insert(kFollowProgram);
  if (auto* storage = s.map("task_slots"); storage && !bpf_map__autocreate(storage))
    own.insert(kTaskFreeProgram);
  if (s.map("long_records")) own.insert(kLongFreeProgram);
  if (s.unwinds) own.insert(kUnwindPrograms.begin(), kUnwindPrograms.end());
  return own;
}

void learn_names(Session& s) {
  s.names.tell_hidden = [&s](const Error& why) { s.note("kernel addresses are not shown", why); };
  for (auto& f : s.tool.report->fields()) s.names.learn(f.format, s.kernel);
}

Result<void> prepare_with(Session& s, Reporter& reporter, const Refused& refused) {
  if (auto r = open_object(s); !r) return r;
  s.limits.clear();
  s.unwinds = false;
  configure(s, reporter);
  if (auto r = reporter.make_maps(s); !r) return r;
  if (auto r = configure_filters(s); !r) return r;
  reporter.size_maps(s);
  size_maps(s);
  auto plan = make_plan(s.tool, s.config, s.kernel, s.object.get(), refused);
  if (!plan) return plan.error();
  s.plan = std::move(*plan);
  s.plan.limits.insert(s.plan.limits.end(), s.limits.begin(), s.limits.end());
  select_programs(s.plan, s.object.get(), own_programs(s));
  configure_targets(s);
  if (!s.tool.compile) return {};
  if (auto r = s.tool.compile(s); !r) return r;
  return check_pads(s.pads);
}

Result<void> load_with_names(Session& s) {
  learn_names(s);  // load() closes the kernel's types
  return load(s);
}

Result<void> attach_one(Session& s, bpf_program* program) {
  if (samples(program)) {  // for CPUs that come online later
    s.retained.add({Capability::perfmon, Capability::bpf});
    if (perf_events_for_admin()) s.reserve.add(Capability::sys_admin);
  }
  if (auto kind = kind_of(program)) return attach_targets(s, program, *kind);
  auto links = attach_program(s, program);
  if (!links) return links.error();
  std::ranges::move(*links, std::back_inserter(s.links));
  return {};
}

/// Attaches all loaded programs; on failure stores the name of the program that failed.
Result<void> attach_all(Session& s, std::string& failed) {
  for (auto* program : programs_of(s.object.get())) {
    if (!bpf_program__autoload(program)) continue;
    auto attached = attach_one(s, program);
    if (attached) continue;
    failed = bpf_program__name(program);
    detach(s.links);
    return attached;
  }
  return {};
}

/// Sets the time since when an end event without its start is counted as lost.
void begin(Session& s) {
  s.began_ns = monotonic_ns();
  set_live(s, "tracing_since", &s.began_ns, sizeof s.began_ns);
  if (int error = clock_error())
    s.plan.limits.push_back(
        fmt::format("in a time namespace, times are shown wrong: cannot read "
                    "/proc/self/timens_offsets: {}",
                    strerror(error)));
}

Result<void> redirect(Session& s) {
  if (!s.config.given("output") || s.config.given("explain")) return {};
  OutputFile::How how{.most = s.config.files.rotate_bytes,
                      .keep = s.config.files.rotate_keep,
                      .append = s.config.given("append"),
                      .tell = [&s](std::string_view what, const Error& why) { s.note(what, why); }};
  if (auto r = s.file.open(std::string(s.config.text("output")), std::move(how)); !r) return r;
  s.out = Sink(s.file);
  // Blocked until the loop watches it; a report may use the signal itself, and has blocked it then.
  block_signal(kReopenSignal);
  return {};
}

/// Warns at the start if the remaining capabilities do not suffice for --rotate.
void check_rotation(const Session& s) {
  if (!s.config.files.rotate_bytes || !s.file) return;
  if (auto why = s.file.hindrance(); !why.empty())
    s.note(fmt::format("{} will grow beyond --rotate", s.file.path()), {{}, why});
}

/// Options that decide where the output goes and what form it has: `coretap show` takes others.
constexpr std::string_view kOutputOptions[] = {
    "append",  "color",   "csv",    "debug",  "dot",    "exit-status",
    "explain", "heatmap", "json",   "lines",  "output", "output-format",
    "pprof",   "record",  "rotate", "screen", "strict", "svg"};

std::vector<std::string> words_to_record(const Config& config) {
  std::vector<std::string> words;
  for (auto& [name, value] : config.given_options())
    if (std::ranges::find(kOutputOptions, name) == std::end(kOutputOptions))
      words.push_back(value.empty() ? fmt::format("--{}", name)
                                    : fmt::format("--{}={}", name, value));
  words.insert(words.end(), config.words.begin(), config.words.end());
  return words;
}

/// Options that name a file, of an output that some tools make from other data.
constexpr std::string_view kFileOptions[] = {"dot", "heatmap", "pprof", "svg"};

std::vector<std::string> files_to_record(const Config& config) {
  std::vector<std::string> given;
  for (auto option : kFileOptions)
    if (config.given(option)) given.emplace_back(option);
  return given;
}

record::Head head_of(const Session& s) {
  utsname system{};
  uname(&system);
  const time_t now = time(nullptr);
  tm local{};
  localtime_r(&now, &local);
  return {.coretap = std::string(kVersion),
          .tool = std::string(s.tool.name),
          .called = std::string(s.tool.called.name),
          .words = words_to_record(s.config),
          .host = system.nodename,
          .kernel = system.release,
          .machine = system.machine,
          .zone_seconds = local.tm_gmtoff,
          .zone = local.tm_zone,
          .record_bytes = s.tool.report->record_size(),
          .files = files_to_record(s.config)};
}

/// --record: from now on the session's data and answers of the system are written, too.
class Recording {
 public:
  explicit Recording(Session& s) : s_(s) {}
  ~Recording() {
    if (!s_.recorder) return;
    recorder_.close();
    recall = nullptr;
    release_clock();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Result<void> begin() {
    if (s_.config.files.record.empty()) return {};
    if (auto r = recorder_.open(s_.config.files.record); !r) return r;
    recorder_.head(head_of(s_));
    s_.source = recorder_.over(std::move(s_.source));
    s_.recorder = &recorder_;
    recall = &recorder_;
    return {};
  }

 private:
  Session& s_;
  record::Recorder recorder_;
};

void end_recording(Session& s, std::uint64_t missed) {
  auto& recorder = *s.recorder;
  recorder.moment();
  recorder.did(record::Did::finish, missed);
  const auto seconds = static_cast<double>(recorder.now() - s.began_ns) / 1e9;
  recorder.close();
  hold_clock(recorder.now());  // what is still printed has this time
  if (recorder.file().failed()) {
    s.incomplete = true;
    return;
  }
  s.say(fmt::format("recorded {:.1f} s, {} events, {:.1f} KB: {}", seconds, s.ledger.seen(),
                    static_cast<double>(recorder.file().bytes()) / 1024,
                    printable(recorder.file().path())));
}

/// The end of a run without failure, unless its output cannot be written.
Result<int> end_of_output(Session& s) {
  s.out.flush();
  if (s.out.failed()) return s.out.error();
  return int{kOk};
}

Result<int> finish(Session& s, Reporter& reporter, Command& command) {
  const auto missed = s.ledger.count[LEDGER_MISSED];  // counted by links
  s.ledger = whole_ledger(s);
  if (s.recorder) end_recording(s, missed);
  if (!s.out.closed()) let_signals_kill();  // the rest is only printing
  auto finished = reporter.finish(s);
  if (!finished) print_error(s.tool.shown_name(), finished.error());
  if (s.out.dropped() && s.config.given("strict")) return int{kDataLost};
  if (s.out.closed()) return int{finished ? kOk : kFailed};
  print_ledger(s);
  s.out.flush();
  if (!finished || s.incomplete) return int{kFailed};
  if (s.out.failed()) return s.out.error();
  if (s.config.given("strict") && s.ledger.data_lost()) return int{kDataLost};
  if (s.config.given("exit-status") && command.status() >= 0) return command.status();
  return reporter.status();
}

/// The run of a tool, with a kernel program or without.
class Run {
 public:
  explicit Run(Session& s) : s_(s), has_program_(s.tool.report->has_program()) {}
  ~Run() { s_.names.context.return_borrowed(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<int> explain() {
    auto source = s_.tool.report->source();
    if (has_program_) {
      if (auto r = plan({}); !r) return r.error();
      print_plan(s_);
    } else if (s_.config.format == OutputFormat::json) {
      s_.out.line(JsonLine("source", s_.tool.name).text("source", source).finish());
    } else {
      s_.out.line(fmt::format("reads {}, attaches nothing", source));
    }
    return end_of_output(s_);
  }

  /// Shows a recording. `every_ns`: reports are that far apart, where the recording has readings;
  /// 0: as they were.
  Result<int> show(record::Replay& from, const record::Replay::Mark& begin,
                   std::uint64_t every_ns) {
    every_ns_ = every_ns;
    shown_ns_ = begin.monotonic_ns;
    reporter_ = s_.tool.report->reporter();
    learn_names(s_);
    s_.names.targets = unpacked(recalled(Ask::targets, "", [] { return std::string(); }));
    hold_clock(begin.monotonic_ns);
    s_.began_ns = begin.monotonic_ns;
    s_.source = from.source();
    reporter_->configure(s_);
    if (auto r = reporter_->open(s_); !r) return r.error();
    print_header(s_);
    auto took = s_.source->open_records(
        [this](const void* record, std::size_t bytes) { reporter_->record(s_, record, bytes); });
    if (!took) return took.error();
    reporter_->begin(s_);
    s_.out.keep_header();
    auto last = begin;
    while (last.did != record::Did::finish && !reporter_->wants_end()) {
      auto mark = from.next();
      if (!mark) return mark.error();
      if (!*mark) {
        end_early(last);
        break;
      }
      do_again(last = **mark);
      s_.out.flush();
      if (s_.out.failed() || s_.out.closed()) break;
    }
    return finish(s_, *reporter_, command_);
  }

  Result<int> run() {
    if (auto r = hold_command(); !r) return r.error();
    if (auto r = has_program_ ? start_program() : start_without(); !r) return r.error();
    if (s_.recorder) {
      s_.recorder->moment();
      record_header(s_);
      recalled(Ask::targets, "", [&] { return packed(s_.names.targets); });
    }
    if (auto r = reporter_->open(s_); !r) return r.error();
    if (auto r = start_on_each_cpu(s_); !r) return r.error();
    begin(s_);
    drop_capabilities(s_);
    check_rotation(s_);
    for (auto& l : s_.plan.limits) s_.say("note: " + l);
    if (has_program_ || !reporter_->immediate()) announce(s_);
    print_header(s_);
    give_memory_back();
    if (auto r = trace(s_, *reporter_, command_); !r) return r.error();
    return finish(s_, *reporter_, command_);
  }

 private:
  void do_again(const record::Replay::Mark& mark) {
    hold_clock(mark.monotonic_ns);
    // Readings are late by less than half of the time between two.
    constexpr std::uint64_t kLate = 500'000'000;
    const bool reading = mark.did == record::Did::report || mark.did == record::Did::sample;
    const bool due = every_ns_ ? mark.monotonic_ns - shown_ns_ + kLate >= every_ns_
                               : mark.did == record::Did::report;
    if (mark.did == record::Did::last || (reading && due)) {
      shown_ns_ = mark.monotonic_ns;
      reporter_->report(s_);
      s_.out.flush(true);
    }
    switch (mark.did) {
      case record::Did::ends:
        reporter_->ends(s_);
        break;
      case record::Did::hurry:
        reporter_->hurry();
        break;
      case record::Did::finish:
        s_.ledger.count[LEDGER_MISSED] += mark.missed;
        break;
      case record::Did::begin:
      case record::Did::sample:
      case record::Did::report:
      case record::Did::last:
        break;
    }
  }

  /// The recorded run was killed, or the file is not whole: what it has is shown.
  void end_early(const record::Replay::Mark& last) {
    s_.say(fmt::format("the recording ends at {}, without its end: what came later is missing",
                       wall_time(last.monotonic_ns)));
    if (last.did == record::Did::sample && !reporter_->immediate()) reporter_->report(s_);
  }

  Result<void> hold_command() {
    if (s_.config.command.empty()) return {};
    if (auto r = command_.prepare(s_.config.command); !r) return r;
    s_.command = command_.pid();
    return {};
  }

  Result<void> start_program() {
    if (auto r = attach(); !r) return r;
    return s_.source->open();
  }

  Result<void> start_without() {
    reporter_ = s_.tool.report->reporter();
    reporter_->configure(s_);
    return {};
  }

  Result<void> plan(const Refused& refused) {
    s_.names.context.return_borrowed();
    reporter_ = s_.tool.report->reporter();
    return prepare_with(s_, *reporter_, refused);
  }

  /// If attaching fails despite the checks, rejects that candidate and plans again.
  Result<void> attach() {
    for (Refused refused;;) {
      if (auto r = plan(refused); !r) return r;
      if (auto r = load_with_names(s_); !r) return r;
      if (auto r = fill_filters(s_); !r) return r;
      if (auto r = reporter_->ready(s_); !r) return r;
      std::string failed;
      auto attached = attach_all(s_, failed);
      if (attached || attached.error().status != kUnsupported ||
          !refused.emplace(failed, attached.error().why).second)
        return attached;
    }
  }

  Session& s_;
  const bool has_program_;
  Command command_;
  std::unique_ptr<Reporter> reporter_;
  std::uint64_t every_ns_ = 0, shown_ns_ = 0;  ///< of show()
};

/// The text that is printed instead of a run, for --help and the like; nothing: the tool runs.
std::optional<std::string> text_instead(const Invocation& parsed, const Tool& tool) {
  switch (parsed.what) {
    case Invocation::help:
      return help_text(tool);
    case Invocation::usage:
      return fmt::format("Usage: {} {}\n", command_of(tool.shown_name()), synopsis(tool));
    case Invocation::version:
      return fmt::format("{} (coretap) {}\n{}\n", tool.name, kVersion, build_words());
    case Invocation::run:
      break;
  }
  if (tool.list && parsed.config.given("list")) return tool.list(parsed.config);
  return {};
}

/// `config`: the session's, which looking up completes.
Result<int> run_steps(Session& s, Config& config) {
  auto gone = find_tasks(config.tasks);
  if (!gone) return gone.error();
  for (auto& note : *gone) s.say("note: " + note);
  if (auto r = s.tool.report->look_up(config); !r) return r.error();
  if (auto r = redirect(s); !r) return r.error();
  block_signals();
  raise_descriptor_limit();
  for (int number : s.tool.report->early_signals(config)) block_signal(number);
  if (s.tool.report->has_program()) {
    if (auto r = check_rights(s.kernel); !r) return r.error();
    if (s.tool.look_up)
      if (auto r = s.tool.look_up(config); !r) return r.error();
    for (auto& note : config.notes) s.say("note: " + note);
  }
  Recording recording(s);
  if (!config.given("explain"))
    if (auto r = recording.begin(); !r) return r.error();
  Run run(s);
  return config.given("explain") ? run.explain() : run.run();
}

}  // namespace

std::string build_words() {
  std::string_view commit = kCommit;
  return fmt::format("{}libbpf {}, compiler {}",
                     commit.empty() ? "" : fmt::format("commit {}, ", commit),
                     std::string_view(libbpf_version_string()).substr(1), kCompiler);
}

Result<void> prepare(Session& s) {
  if (s.tool.report->opens_perf_events() && !own_capabilities().has(Capability::perfmon))
    return Error{"not allowed to count",
                 fmt::format("missing {}", name_of(Capability::perfmon)),
                 {},
                 kUnsupported};
  if (!s.tool.report->has_program()) return {};
  if (auto r = check_rights(s.kernel); !r) return r;
  auto reporter = s.tool.report->reporter();
  if (auto r = prepare_with(s, *reporter, {}); !r) return r;
  return load_with_names(s);
}

int run_tool(const Tool& declared, const std::vector<std::string>& arguments, Exported* exported) {
  auto fail = [&](const Error& e) {
    print_error(declared.shown_name(), e);
    return e.status;
  };
  auto parsed = parse_command_line(declared, arguments);
  if (!parsed) return fail(parsed.error());
  auto tool = declared;
  tool.report = chosen_report(declared, parsed->config);
  Session s(tool, parsed->config);
  std::optional<metrics::Exporter> exporter;
  if (exported) {
    auto plan = metrics::make_plan(tool, parsed->config, exported->options.labels);
    if (!plan) return fail(plan.error());
    exporter.emplace(*plan, exported->options, std::move(exported->channel),
                     std::move(exported->events));
    s.exporter = &*exporter;
    // Requests determine the times.
    parsed->config.schedule = {};
  }
  auto text = text_instead(*parsed, tool);
  if (text) s.out.write(*text);
  auto status = text ? end_of_output(s) : run_steps(s, parsed->config);
  return status ? *status : fail(status.error());
}

namespace {

/// The option of a word such as "--sort=bytes"; empty: it is another word.
std::string_view option_of(std::string_view word) {
  if (!word.starts_with("--")) return {};
  return word.substr(2, word.substr(0, word.find('=')).size() - 2);
}

bool gives_interval(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](std::string_view word) {
    return option_of(word) == "interval" || (word.starts_with("-i") && !word.starts_with("--"));
  });
}

/// The words of the user, and those of the recorded run that they do not replace.
std::vector<std::string> words_to_show(const Tool& tool, const record::Head& head,
                                       const std::vector<std::string>& more) {
  auto words = more;
  const bool interval = gives_interval(more);
  auto positional = tool.positionals.begin();
  for (auto& word : head.words) {
    const auto option = option_of(word);
    if (option.empty()) {
      const bool of_interval = positional != tool.positionals.end() &&
                               (positional->option == "interval" || positional->metavar == "COUNT");
      if (positional != tool.positionals.end() && !positional->repeats()) ++positional;
      if (interval && of_interval) continue;
    } else if ((interval && option == "interval") ||
               std::ranges::any_of(more, [&](auto& w) { return option_of(w) == option; })) {
      continue;
    }
    words.push_back(word);
  }
  return words;
}

/// Constants of the kernel program that a report sets, by name.
std::map<std::string, std::string> settings_of(const Tool& tool, const Config& config) {
  std::map<std::string, std::string> all;
  Session s(tool, config);
  s.constants = &all;
  tool.report->reporter()->configure(s);
  return all;
}

bool same_settings(const Tool& tool, const Config& one, const Config& other) {
  auto before = settings_of(tool, one), after = settings_of(tool, other);
  // Some are random.
  for (auto& [name, value] : settings_of(tool, one))
    if (before[name] != value) {
      before.erase(name);
      after.erase(name);
    }
  return before == after;
}

/// Refuses options that would have changed a constant of the kernel program, its hooks or filters.
Result<void> check_same_tracing(const Tool& tool, const Config& recorded, const Config& shown) {
  auto refused = [&](std::string_view what) {
    return Error{fmt::format("{}: was decided when the run was recorded", what),
                 {},
                 fmt::format("record again with it: coretap {} --record FILE ...", tool.name),
                 kUsage};
  };
  for (auto& [name, value] : shown.given_options()) {
    const bool file = std::ranges::find(kFileOptions, name) != std::end(kFileOptions);
    if (recorded.given(name) ? file || recorded.text(name) == value : name == "interval") continue;
    Config with = recorded;
    const auto options = all_options(tool);
    auto option =
        std::ranges::find_if(options, [&wanted = name](auto& o) { return o.name == wanted; });
    if (option == options.end()) continue;
    if (auto r = option->apply(with, value); !r) return r.error();
    with.give(name, value);
    const bool same_constants = std::ranges::equal(
        with.edits(), recorded.edits(),
        [](auto& a, auto& b) { return a.target.offset == b.target.offset && a.value == b.value; });
    const bool hooks_differ = std::ranges::any_of(
        tool.hooks, [&](auto& hook) { return with.holds(hook.when) != recorded.holds(hook.when); });
    if (!same_constants || hooks_differ || !same_settings(tool, recorded, with) ||
        with.tasks != recorded.tasks || with.sampling != recorded.sampling ||
        &*chosen_report(tool, with) != &*chosen_report(tool, recorded))
      return refused(fmt::format("--{}", name));
  }
  return {};
}

}  // namespace

void use_zone(const record::Head& head) {
  constexpr std::int64_t kMost = 26 * 3600;
  if (head.zone_seconds < -kMost || head.zone_seconds > kMost) return;
  // POSIX counts west of Greenwich.
  const auto west = -head.zone_seconds, minutes = (west < 0 ? -west : west) / 60;
  const auto zone = fmt::format("<{:+03}>{}{:02}:{:02}", head.zone_seconds / 3600,
                                west < 0 ? "-" : "+", minutes / 60, minutes % 60);
  setenv("TZ", zone.c_str(), 1);
  tzset();
}

namespace {

/// `to`: a file instead of standard output; then no message is printed, and reports are those of
/// each second unless the run had intervals.
Result<int> show(record::Replay& replay, const std::string& path,
                 std::vector<std::string> arguments, std::optional<int> to) {
  if (auto r = replay.open(path); !r) return r.error();
  auto* registered = find_tool(replay.head().tool);
  if (!registered)
    return Error{fmt::format("{}: is of a tool that is not in this coretap: '{}'", path,
                             printable(replay.head().tool)),
                 {},
                 {},
                 kUnsupported};
  const auto declared = build(*registered);
  auto recorded_words = replay.head().words;
  for (auto& option : replay.head().files)
    if (std::ranges::find(kFileOptions, option) != std::end(kFileOptions))
      recorded_words.insert(recorded_words.begin(), fmt::format("--{}=file.svg", option));
  auto recorded = parse_command_line(declared, recorded_words);
  if (!recorded) return recorded.error();
  if (to && !recorded->config.schedule.interval) arguments.emplace_back("--interval=1");
  auto parsed = parse_command_line(declared, words_to_show(declared, replay.head(), arguments));
  if (!parsed) return parsed.error();
  auto tool = declared;
  tool.report = chosen_report(declared, parsed->config);
  if (tool.report->record_size() != replay.head().record_bytes || !tool.report->can_be_recorded())
    return Error{fmt::format("{}: coretap {} has recorded it with other data", path,
                             printable(replay.head().coretap)),
                 {},
                 "show it with that version",
                 kUnsupported};
  use_zone(replay.head());
  auto begin = replay.begin();
  if (!begin) return begin.error();
  if (auto r = check_same_tracing(tool, recorded->config, parsed->config); !r) return r.error();
  if (parsed->config.given("lines"))
    return usage("--lines: a recording has no source lines",
                 "coretap symbolize prints those of addresses");
  const bool other_interval = gives_interval(arguments);
  if (other_interval && parsed->config.schedule.interval < 1)
    return usage("--interval: a recording has readings of each second, not of shorter times");
  Session s(tool, parsed->config);
  if (auto text = text_instead(*parsed, tool)) {
    s.out.write(*text);
    return end_of_output(s);
  }
  if (to) {
    s.out = Sink(*to);
    s.quiet = true;
  } else {
    if (auto r = redirect(s); !r) return r.error();
    auto& files = s.config.files;
    confine_show(s.file || !files.svg.empty() || !files.pprof.empty() || !files.heatmap.empty() ||
                 !files.dot.empty());
  }
  const auto every = other_interval ? parsed->config.schedule.interval * 1e9 : 0;
  return Run(s).show(replay, *begin, static_cast<std::uint64_t>(every));
}

/// Answers come from a recording.
class Recalling {
 public:
  explicit Recalling(record::Replay& replay) { recall = &replay; }
  ~Recalling() {
    recall = nullptr;
    release_clock();
  }
  Recalling(const Recalling&) = delete;
  Recalling& operator=(const Recalling&) = delete;
};

}  // namespace

int show_recording(const std::string& path, const std::vector<std::string>& arguments) {
  record::Replay replay;
  const Recalling recalling(replay);
  auto status = show(replay, path, arguments, {});
  if (status) return *status;
  print_error("coretap show", status.error());
  return status.error().status;
}

bool is_recording(const std::string& path) {
  return static_cast<bool>(record::Reader().open(path));
}

Result<std::string> recording_as_json(const std::string& path) {
  record::Replay replay;
  const Recalling recalling(replay);
  const Fd file(memfd_create("shown", MFD_CLOEXEC));
  if (!file) return system_error("cannot make a file in memory", errno);
  if (auto status = show(replay, path, {"--json"}, file.get()); !status) return status.error();
  std::string text(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  text.resize(read_bytes(file.get(), 0, text.data(), text.size()));
  return text;
}

}  // namespace coretap
