#include "run/run.hpp"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/loop.hpp"
#include "base/memory.hpp"
#include "base/recall.hpp"
#include "cli/parser.hpp"
#include "coretap/clock.hpp"
#include "coretap/kernel.hpp"
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
#include "reports/reporter.hpp"
#include "run/command.hpp"
#include "run/recording.hpp"
#include "run/run_words.hpp"
#include "run/steps.hpp"
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
  if (auto* storage = s.map(MapName("task_slots")); storage && !bpf_map__autocreate(storage))
    own.insert(kTaskFreeProgram);
  if (s.map(MapName("long_records"))) own.insert(kLongFreeProgram);
  if (s.unwinds) own.insert(kUnwindPrograms.begin(), kUnwindPrograms.end());
  return own;
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
  if (s.tool.check_plan)
    if (auto r = s.tool.check_plan(s); !r) return r;
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

/// Warns at the start if the remaining capabilities do not suffice for --rotate.
void check_rotation(const Session& s) {
  if (!s.config.files.rotate_bytes || !s.file) return;
  if (auto why = s.file.hindrance(); !why.empty())
    s.note(fmt::format("{} will grow beyond --rotate", s.file.path()), {{}, why});
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
    if (!s_.silent && (has_program_ || !reporter_->immediate())) announce(s_);
    print_header(s_);
    give_memory_back();
    if (auto r = trace(s_, *reporter_, command_); !r) return r.error();
    return finish(s_, *reporter_, command_.status());
  }

 private:
  Result<void> hold_command() {
    if (s_.config.command.empty()) return {};
    if (auto r = command_.prepare(s_.config.command); !r) return r;
    s_.command = command_.pid();
    return {};
  }

  /// Loading programs may take long. Until then a signal ends the process at once, unless a file
  /// has been begun.
  Result<void> start_program() {
    const bool nothing_to_end = !s_.file && !s_.recorder;
    if (nothing_to_end) let_signals_kill();
    auto attached = attach();
    if (nothing_to_end) block_signals();
    if (!attached) return attached;
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
};

/// `config`: the session's, which looking up completes.
Result<int> run_steps(Session& s, Config& config, const RecordTo* recorded) {
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
  Recording recording(s, recorded);
  if (!config.given("explain"))
    if (auto r = recording.begin(); !r) return r.error();
  Run run(s);
  return config.given("explain") ? run.explain() : run.run();
}

}  // namespace

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

int run_tool(const Tool& declared, const std::vector<std::string>& arguments, Exported* exported,
             const RecordTo* recorded) {
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
  const Fd nowhere(recorded && !exported ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1);
  if (nowhere) {
    s.out = Sink(nowhere.get());
    s.silent = true;
  }
  auto text = text_instead(*parsed, tool);
  if (text) s.out.write(*text);
  auto status = text ? end_of_output(s) : run_steps(s, parsed->config, recorded);
  return status ? *status : fail(status.error());
}

}  // namespace coretap
