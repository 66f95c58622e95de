#include "run/run.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "text/errors.hpp"

#include "base/clock.hpp"
#include "base/loop.hpp"
#include "base/memory.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/version.hpp"
#include "metrics/exporter.hpp"
#include "program/attach.hpp"
#include "program/each_cpu.hpp"
#include "program/filters.hpp"
#include "program/load.hpp"
#include "program/maps.hpp"
#include "program/needed_capabilities.hpp"
#include "program/session.hpp"
#include "program/target_attach.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"
#include "run/command.hpp"

namespace coretap {

namespace {

constexpr double kCpuSeconds = 0.2;               // how soon a CPU that has come is noticed
constexpr double kDrainSeconds = 0.1;             // the latest an event waits before it is shown
constexpr double kServedDrainSeconds = 1;         // the same for `coretap serve`, which shows sums
constexpr int kReopenSignal = SIGUSR1;            // of --output, as logrotate's users know it
constexpr double kEarlySeconds[] = {0.01, 0.03};  // someone waits for the first of them

Result<void> check_rights(Kernel& kernel) {
  if (auto missing = missing_capabilities(); !missing.empty())
    return Error{"not allowed to trace", fmt::format("missing {}", missing),
                 "run as root (sudo), or grant those capabilities", kUnsupported};
  if (!kernel.has_btf())
    return Error{"this kernel does not provide its type information",
                 "there is no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)",
                 "use a kernel built with BTF, as in all current distributions", kUnsupported};
  return {};
}

void configure(Session& s, Reporter& reporter) {
  for (auto& edit : s.config.edits())
    edit_rodata(s, edit.target.offset, &edit.value, std::min<std::size_t>(edit.target.size, 8));
  // Facts about this kernel's tracepoints that the program asks for by the variable's name.
  constexpr std::string_view kArgs = "tp_args_";
  each_constant(s, [&](std::string_view name, std::uint32_t offset, std::uint32_t size) {
    if (!name.starts_with(kArgs)) return;
    auto fact = static_cast<std::uint64_t>(
        std::max(0, s.kernel.tracepoint_args(name.substr(kArgs.size()))));
    edit_rodata(s, offset, &fact, size);
  });
  if (s.config.disk) {
    set_variable(s, "filter_disk", *s.config.disk);
    set_variable(s, "filter_disk_on", 1);
  }
  if (s.config.cpu) {
    set_variable(s, "filter_cpu", *s.config.cpu);
    set_variable(s, "filter_cpu_on", 1);
  }
  set_variable(s, "own_tgid", static_cast<std::uint64_t>(getpid()));
  // A set of CPUs that programs can hold has 1024 at most.
  auto cpu_words = static_cast<std::uint64_t>((possible_cpus() + 63) / 64);
  set_variable(s, "cpu_words", cpu_words <= 16 ? cpu_words : 0);
  set_variable(s, "page_bytes", static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  reporter.configure(s);
}

std::set<std::string_view> own_programs(const Session& s) {
  std::set<std::string_view> own;
  if (!s.config.command.empty()) own.insert(kFollowProgram);
  if (auto* storage = s.map("task_slots"); storage && !bpf_map__autocreate(storage))
    own.insert(kTaskFreeProgram);
  if (s.unwinds) own.insert(kUnwindPrograms.begin(), kUnwindPrograms.end());
  return own;
}

void learn_names(Session& s) {
  s.names.tell_hidden = [&s](const Error& why) { s.note("kernel addresses are not shown", why); };
  for (auto& f : s.tool.report->fields()) s.names.learn(f.format, s.kernel);
}

Result<void> prepare_with(Session& s, Reporter& reporter, pid_t command, const Refused& refused) {
  if (auto r = open_object(s); !r) return r;
  s.limits.clear();
  s.unwinds = false;
  configure(s, reporter);
  if (auto r = configure_filters(s, command); !r) return r;
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

/// Attaches all that is loaded; on failure names the program that failed.
Result<void> attach(Session& s, std::string* failed) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s.object.get()) {
    if (!bpf_program__autoload(program)) continue;
    if (samples(program))
      s.retained.add({Capability::perfmon, Capability::bpf});  // CPUs may come later
    if (is_target(program)) {
      auto attached = attach_targets(s, program);
      if (attached) continue;
      *failed = bpf_program__name(program);
      detach(s.links);
      return attached;
    }
    auto links = attach_program(program, s.config, s.plan);
    if (!links) {
      *failed = bpf_program__name(program);
      detach(s.links);
      return links.error();
    }
    for (auto& link : *links) s.links.push_back(std::move(link));
  }
  return {};
}

/// Tells the programs from when on an end without its start is a loss.
void set_tracing_since(Session& s) {
  s.began_ns = monotonic_ns();
  set_live(s, "tracing_since", &s.began_ns, sizeof s.began_ns);
}

/// Of programs and libraries that are probed.
std::set<std::string> files_of(const CandidatePlan& way) {
  std::set<std::string> files;
  for (auto& [program, places] : way.places)
    for (auto& point : places.points) files.insert(point.path);
  return files;
}

void print_header(Session& s) {
  if (s.config.format != OutputFormat::json || !s.prints()) return;
  JsonLine line("header", s.tool.name);
  line.text("version", kVersion);
  line.text("kernel", kernel_release())
      .text("time", iso_time(s.began_ns))
      .number("monotonic_ns", s.began_ns);
  line.key("options").begin_object();
  for (auto& [name, value] : s.config.given_options()) line.text(name, value);
  line.end_object().key("hooks").begin_array();
  for (auto& h : s.plan.hooks) {
    if (!h.wanted) continue;
    line.begin_object().text("hook", h.hook->name).key("attached").begin_array();
    if (h.chosen >= 0)
      for (auto& target : h.candidates[h.chosen].targets) line.text(target);
    line.end_array();
    if (h.chosen >= 0 && !h.candidates[h.chosen].places.empty()) {
      line.key("files").begin_array();
      for (auto& file : files_of(h.candidates[h.chosen])) line.text(file);
      line.end_array();
    }
    line.end_object();
  }
  line.end_array().key("limits").begin_array();
  for (auto& l : s.plan.limits) line.text(l);
  line.end_array();
  s.out.line(line.finish());
}

/// With what kernel programs have counted until now.
Ledger whole_ledger(const Session& s, const CpuSlots& slots) {
  auto all = s.ledger;
  ledger sum{};
  slots.sum(reinterpret_cast<std::uint64_t*>(sum.count), LEDGER_CAUSES);
  for (int i = 0; i < LEDGER_CAUSES; i++) all.count[i] += sum.count[i];
  // Where tracepoints can be preempted, another task's event on that CPU finds the program busy.
  auto add_missed = [&](int program) {
    bpf_prog_info info{};
    __u32 size = sizeof info;
    if (program >= 0 && bpf_obj_get_info_by_fd(program, &info, &size) == 0)
      all.count[LEDGER_MISSED] += info.recursion_misses;
  };
  if (!s.object) return all;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s.object.get()) add_missed(bpf_program__fd(program));
  for (auto& copy : s.copies) add_missed(copy.get());
  return all;
}

void print_ledger(Session& s) {
  if (s.config.format == OutputFormat::json && s.prints()) {
    JsonLine line("ledger", s.tool.name);
    s.ledger.json(line);
    s.out.line(line.finish());
    s.out.flush();
  }
  auto text = s.ledger.text(s.config.given("verbose"), STDERR_FILENO);
  if (!text.empty()) fputs(fmt::format("{}: {}", s.tool.name, text).c_str(), stderr);
}

void print_sizes(Session& s) {
  std::string text = "maps:\n";
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, s.object.get()) {
    if (!bpf_map__autocreate(map)) continue;
    text +=
        fmt::format("  {}: {} entries of {} + {} bytes\n", bpf_map__name(map),
                    bpf_map__max_entries(map), bpf_map__key_size(map), bpf_map__value_size(map));
  }
  s.out.write(text);
}

void print_plan_json(Session& s) {
  for (auto& line : explain_json(s.plan, s.tool.name)) s.out.line(line);
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, s.object.get()) {
    if (!bpf_map__autocreate(map)) continue;
    JsonLine line("map", s.tool.name);
    line.text("map", bpf_map__name(map));
    line.number("entries", bpf_map__max_entries(map));
    line.number("key_bytes", bpf_map__key_size(map));
    line.number("value_bytes", bpf_map__value_size(map));
    s.out.line(line.finish());
  }
}

void print_plan(Session& s) {
  if (s.config.format == OutputFormat::json) {
    print_plan_json(s);
    return;
  }
  s.out.write(explain(s.plan, true));
  for (auto& l : s.plan.limits) s.out.line("limit: " + l);
  print_sizes(s);
}

Result<void> redirect(Session& s) {
  if (!s.config.given("output") || s.config.given("explain")) return {};
  OutputFile::How how{.most = s.config.rotate_bytes,
                      .keep = s.config.rotate_keep,
                      .append = s.config.given("append"),
                      .tell = [&s](std::string_view what, const Error& why) { s.note(what, why); }};
  if (auto r = s.file.open(std::string(s.config.text("output")), std::move(how)); !r) return r;
  s.out = Sink(s.file);
  // Until the loop sees it; a report may have another use for it, and has blocked it then.
  block_signal(kReopenSignal);
  return {};
}

/// What the rights that are left are enough for is known before it is needed.
void check_rotation(const Session& s) {
  if (!s.config.rotate_bytes || !s.file) return;
  if (auto why = s.file.hindrance(); !why.empty())
    s.note(fmt::format("{} will grow beyond --rotate", s.file.path()), {{}, why});
}

/// CPUs that come online while perf events are sampled get theirs.
class CpuWatch {
 public:
  explicit CpuWatch(Session& s) : s_(s), online_(online_cpus()) {}

  static bool wanted(const Session& s) {
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, s.object.get()) {
      if (bpf_program__autoload(program) && samples(program)) return true;
    }
    return false;
  }

  void look() {
    auto now = online_cpus();
    std::vector<int> came;
    std::set_difference(now.begin(), now.end(), online_.begin(), online_.end(),
                        std::back_inserter(came));
    online_ = std::move(now);
    if (came.empty()) return;
    auto links = attach_perf_events(s_.object.get(), s_.config, s_.plan, came);
    if (!links)
      s_.note(fmt::format("CPU {} came online and is not sampled", fmt::join(came, ", ")),
              links.error());
    else
      for (auto& link : *links) s_.links.push_back(std::move(link));
  }

 private:
  Session& s_;
  std::vector<int> online_;
};

constexpr double kCollectSeconds = 15;  // without requests: maps of keys do not fill up

/// Replies now, or when the profile's time is over.
void answer_profile(Session& s, Reporter& reporter, Loop& loop, const metrics::Request& request) {
  auto make = reporter.profile(s, request.ms != metrics::Request::kSinceStart);
  auto answer = [&s, request, make] { s.exporter->reply(request, make ? make(s) : std::string()); };
  if (make && request.ms != metrics::Request::kSinceStart)
    loop.once(request.ms / 1e3, answer);
  else
    answer();
}

/// Pages of metrics and profiles, for `coretap serve`.
void answer_requests(Session& s, Reporter& reporter, Loop& loop, const CpuSlots& ledger,
                     const std::function<void()>& collect, bool& too_many) {
  loop.watch(s.exporter->channel(), EPOLLIN, [&s, &reporter, &loop, &ledger, collect] {
    metrics::Request request{};
    bool open = true;
    while (s.exporter->read_request(request, open)) {
      if (request.what == metrics::Request::profile) {
        answer_profile(s, reporter, loop, request);
        continue;
      }
      collect();
      s.exporter->reply(request, s.exporter->page(s, whole_ledger(s, ledger)));
    }
    if (!open) loop.stop();
  });
  if (!reporter.immediate()) loop.every(kCollectSeconds, collect);
  loop.every(metrics::Exporter::kRateSeconds, [&s, &loop, &ledger, &too_many] {
    too_many = s.exporter->too_many(whole_ledger(s, ledger));
    if (too_many) loop.stop();
  });
}

/// Those that are not pushed are limited; they were counted as shown before.
void finish_events(Session& s) {
  auto left = s.exporter->finish_events();
  if (!left) return;
  s.ledger.shown -= std::min(left, s.ledger.shown);
  s.ledger.limited += left;
  s.say(fmt::format("{} events were not pushed: they were not accepted in time", left));
}

/// The part between attach and detach.
Result<void> trace(Session& s, Reporter& reporter, Command& command, const CpuSlots& ledger) {
  Loop loop;
  if (auto r = loop.open(); !r) return r;
  s.out.give_up_on(loop.signals());

  std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring(nullptr, ring_buffer__free);
  struct Context {
    Session* s;
    Reporter* reporter;
  } context{&s, &reporter};
  if (auto* events = s.map("events")) {
    ring.reset(ring_buffer__new(
        bpf_map__fd(events),
        [](void* c, void* data, std::size_t size) {
          auto* context = static_cast<Context*>(c);
          context->reporter->record(*context->s, data, size);
          return 0;
        },
        &context, nullptr));
    if (!ring) return Error{"cannot read the ring buffer", strerror(errno)};
  }
  auto wanted = [&] { return !s.out.closed() || reporter.keeps_file(); };
  auto check_output = [&] {
    if (!wanted() || s.out.failed() || reporter.wants_end()) loop.stop();
  };
  auto drain = [&] {
    if (ring) ring_buffer__consume(ring.get());
    reporter.poll(s);
    s.out.flush();
    if (s.exporter) s.exporter->send_events();
    check_output();
  };
  auto report = [&] {
    drain();
    reporter.report(s);
    s.out.flush(true);
    check_output();
  };

  std::uint64_t reports = 0;
  auto next_report = [&] {
    report();
    if (s.config.count && ++reports >= s.config.count) loop.stop();
  };
  if (ring) {
    loop.watch(ring_buffer__epoll_fd(ring.get()), EPOLLIN, drain);
    for (auto seconds : kEarlySeconds) loop.once(seconds, drain);
  }
  if (double poll = reporter.poll_seconds(); ring || poll > 0)
    loop.every(poll > 0 ? poll : s.exporter ? kServedDrainSeconds : kDrainSeconds, drain);
  if (s.config.interval > 0 && reporter.periodic()) loop.every(s.config.interval, next_report);
  CpuWatch cpus(s);
  if (s.object && CpuWatch::wanted(s)) loop.every(kCpuSeconds, [&] { cpus.look(); });
  if (s.config.duration > 0) loop.once(s.config.duration, [&] { loop.stop(); });
  bool too_many = false;
  if (s.exporter) answer_requests(s, reporter, loop, ledger, report, too_many);
  // A reader that has gone is noticed although there is nothing to write.
  if (!reporter.keeps_file() && !s.file && !s.exporter)
    loop.watch(STDOUT_FILENO, 0, [&] {
      s.out.reader_has_gone();
      loop.stop();
    });
  if (command.pid() > 0) {
    loop.watch(command.pidfd(), EPOLLIN, [&] {
      if (command.status() >= 0) loop.stop();
    });
  }

  reporter.begin(s);
  s.out.keep_header();
  for (int fd : reporter.wakes()) loop.watch(fd, EPOLLIN, drain);
  for (int number : reporter.signals()) {
    block_signal(number);
    loop.on_signal(number, [&, number] {
      drain();
      reporter.signalled(s, number);
      check_output();
    });
  }
  auto own_signals = reporter.signals();
  if (s.file && std::ranges::find(own_signals, kReopenSignal) == own_signals.end())
    loop.on_signal(kReopenSignal, [&] {
      drain();
      s.out.reopen();
      check_output();
    });
  if (reporter.immediate()) {
    next_report();
    if (s.config.interval <= 0 && !s.exporter) loop.stop();
  }
  s.out.flush();  // before a command's first words
  check_output();
  if (command.pid() > 0 && wanted() && !s.out.failed())
    if (auto r = command.start(); !r) return r;
  loop.run();

  if (loop.signal()) s.out.ending();
  bool complete = reporter.immediate() || (s.config.count && reports >= s.config.count);
  if (command.pid() > 0 && command.status() < 0)
    s.say(fmt::format("the command (process {}) goes on, untraced", command.pid()));
  if (!complete && wanted()) reporter.ends(s);
  // What happened until now belongs to the last report; what happens from here on does not.
  const bool stopped = true;
  set_live(s, "tracing_stopped", &stopped, sizeof stopped);
  s.ledger.count[LEDGER_MISSED] += missed_at(s.links);
  detach(s.links);
  if (wanted()) {
    if (complete)
      drain();
    else
      report();
  }
  s.out.give_up_on(-1);
  if (s.exporter) finish_events(s);
  if (too_many) return Error{"too many events", "more than max_events_per_second", {}, kTooMany};
  return {};
}

int finish(Session& s, Reporter& reporter, Command& command, const CpuSlots& ledger) {
  if (!s.out.closed()) let_signals_kill();  // all that is left is to print
  s.ledger = whole_ledger(s, ledger);
  auto finished = reporter.finish(s);
  if (!finished) print_error(s.tool.name, finished.error());
  if (s.out.closed()) return finished ? kOk : kFailed;
  print_ledger(s);
  s.out.flush();
  if (!finished) return kFailed;
  if (s.out.failed()) {
    print_error(s.tool.name, s.out.error());
    return kFailed;
  }
  if (s.config.given("strict") && s.ledger.data_lost()) return kDataLost;
  if (s.config.given("exit-status") && command.status() >= 0) return command.status();
  return kOk;
}

void announce(Session& s) {
  for (auto& l : s.plan.limits) s.say("note: " + l);
  for (auto& h : s.plan.hooks)
    if (h.hook->targets && h.chosen >= 0)
      s.say(fmt::format("tracing {}{}", fmt::join(h.candidates[h.chosen].targets, ", "),
                        s.config.given("debug") ? "\n" + list_targets(s.plan.targets) : ""));
  s.verbose("attached:\n" + explain(s.plan, false));
  if (s.config.format != OutputFormat::text || s.exporter) return;
  auto text = std::string(s.tool.announce);
  if (!s.config.command.empty())
    text += " until the command ends";
  else if (s.config.duration > 0)
    text += fmt::format(" for {:g} s", s.config.duration);
  fputs((text + "... Hit Ctrl-C to end.\n").c_str(), stderr);
}

/// A run without any kernel program.
Result<void> run_without_program(Session& s) {
  if (s.config.given("explain")) {
    if (s.config.format == OutputFormat::json) {
      JsonLine line("source", s.tool.name);
      line.text("source", s.tool.report->source());
      s.out.line(line.finish());
    } else {
      s.out.line(fmt::format("reads {}, attaches nothing", s.tool.report->source()));
    }
    return {};
  }
  Command none;
  auto reporter = s.tool.report->reporter();
  reporter->configure(s);
  if (auto r = reporter->open(s); !r) return r;
  s.began_ns = monotonic_ns();
  drop_capabilities(s);
  check_rotation(s);
  print_header(s);
  if (auto r = trace(s, *reporter, none, CpuSlots()); !r) return r;
  if (s.out.closed()) return {};
  let_signals_kill();
  print_ledger(s);
  return {};
}

}  // namespace

std::string build_words() {
  std::string_view commit = kCommit;
  return fmt::format("{}libbpf {}, compiler {}",
                     commit.empty() ? "" : fmt::format("commit {}, ", commit),
                     std::string_view(libbpf_version_string()).substr(1), kCompiler);
}

Result<void> prepare(Session& s) {
  if (!s.tool.report->has_program()) return {};
  if (auto r = check_rights(s.kernel); !r) return r;
  auto reporter = s.tool.report->reporter();
  if (auto r = prepare_with(s, *reporter, 0, {}); !r) return r;
  return load_with_names(s);
}

int run_tool(const Tool& declared, const std::vector<std::string>& arguments, Exported* exported) {
  auto parsed = parse_command_line(declared, arguments);
  auto tool = declared;
  if (parsed) tool.report = chosen_report(declared, parsed->config);
  auto fail = [&](const Error& e) {
    print_error(tool.name, e);
    return e.status;
  };
  if (!parsed) return fail(parsed.error());
  Session s(tool, parsed->config);
  std::optional<metrics::Exporter> exporter;
  if (exported) {
    auto plan = metrics::make_plan(tool, parsed->config, exported->options.labels);
    if (!plan) return fail(plan.error());
    exporter.emplace(*plan, exported->options, std::move(exported->channel),
                     std::move(exported->events));
    s.exporter = &*exporter;
    // Requests say when.
    parsed->config.interval = parsed->config.duration = 0;
    parsed->config.count = 0;
  }
  auto end_of_output = [&] {
    s.out.flush();
    return s.out.failed() ? fail(s.out.error()) : static_cast<int>(kOk);
  };
  if (parsed->what == Invocation::help) {
    s.out.write(help_text(tool));
    return end_of_output();
  }
  if (parsed->what == Invocation::usage) {
    s.out.line(fmt::format("Usage: {} {}", command_of(tool.name), synopsis(tool)));
    return end_of_output();
  }
  if (parsed->what == Invocation::version) {
    s.out.line(fmt::format("{} (coretap) {}", tool.name, kVersion));
    s.out.line(build_words());
    return end_of_output();
  }
  if (tool.list && s.config.given("list")) {
    s.out.write(tool.list(s.config));
    return end_of_output();
  }

  auto gone = find_tasks(parsed->config);
  if (!gone) return fail(gone.error());
  for (auto& note : *gone) s.say("note: " + note);
  if (auto r = tool.report->look_up(parsed->config); !r) return fail(r.error());
  if (auto r = redirect(s); !r) return fail(r.error());
  block_signals();
  for (int number : tool.report->early_signals(s.config)) block_signal(number);
  if (!tool.report->has_program()) {
    if (auto r = run_without_program(s); !r) return fail(r.error());
    return end_of_output();
  }
  if (auto r = check_rights(s.kernel); !r) return fail(r.error());
  if (tool.look_up)
    if (auto r = tool.look_up(parsed->config); !r) return fail(r.error());
  for (auto& note : s.config.notes) s.say("note: " + note);

  Command command;
  bool explain_plan = s.config.given("explain");
  if (!s.config.command.empty() && !explain_plan)
    if (auto r = command.prepare(s.config.command); !r) return fail(r.error());

  std::unique_ptr<Reporter> reporter;
  Refused refused;
  while (true) {
    reporter = tool.report->reporter();
    auto prepared = prepare_with(s, *reporter, command.pid(), refused);
    if (explain_plan && prepared) {
      print_plan(s);
      return end_of_output();
    }
    if (!prepared) return fail(prepared.error());
    if (auto r = load_with_names(s); !r) return fail(r.error());
    if (auto r = fill_filters(s, command.pid()); !r) return fail(r.error());
    if (auto r = reporter->ready(s); !r) return fail(r.error());
    std::string failed;
    auto attached = attach(s, &failed);
    if (attached) break;
    // Only trying told: what looked well goes, and the next way has its turn.
    if (failed.empty() || attached.error().status == kUsage ||
        !refused.emplace(failed, attached.error().why).second)
      return fail(attached.error());
  }
  CpuSlots ledger;
  if (auto r = ledger.open(s.map("ledger")); !r) return fail(r.error());
  if (auto r = reporter->open(s); !r) return fail(r.error());
  if (auto r = start_on_each_cpu(s); !r) return fail(r.error());
  set_tracing_since(s);
  drop_capabilities(s);
  check_rotation(s);
  announce(s);
  print_header(s);
  give_memory_back();
  if (auto r = trace(s, *reporter, command, ledger); !r) return fail(r.error());
  return finish(s, *reporter, command, ledger);
}

}  // namespace coretap
