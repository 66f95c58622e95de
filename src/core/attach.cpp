#include "core/attach.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/config.hpp"
#include "core/fd.hpp"
#include "core/kernel.hpp"
#include "core/probe.hpp"
#include "core/rights.hpp"
#include "core/syscalls.hpp"
#include "docs/help.hpp"
#include "output/sanitize.hpp"

namespace coretap {

Section split_section(std::string_view section) {
  auto slash = section.find('/');
  if (slash == std::string_view::npos) return {section, {}};
  return {section.substr(0, slash), section.substr(slash + 1)};
}

std::vector<std::string> listed_tracepoints(std::string_view target) {
  auto category = target.substr(0, target.find('/') + 1);
  std::vector<std::string> all;
  for (target.remove_prefix(category.size());; target.remove_prefix(target.find(',') + 1)) {
    all.push_back(fmt::format("{}{}", category, target.substr(0, target.find(','))));
    if (target.find(',') == target.npos) return all;
  }
}

namespace {

Result<int> classic_id(std::string_view target) {
  auto [category, name] = split_section(target);
  return tracepoint_id(category, name);
}

/// Why this kernel cannot attach a program with this section; empty if it can.
std::string refusal(std::string_view section, Kernel& kernel) {
  auto [kind, target] = split_section(section);
  if (kind == "tp_btf" || kind == "raw_tp") {
    if (kernel.tracepoint_args(target) < 0) return fmt::format("no tracepoint {}", target);
  } else if (kind == "tracepoint" || kind == "tp") {
    std::string why;
    for (auto& name : listed_tracepoints(target)) {
      auto id = classic_id(name);
      if (id) return {};
      why = fmt::format("{}: {}", id.error().what, id.error().why);
    }
    return why;
  } else if (kind == "iter") {
    if (!kernel.has_function(fmt::format("bpf_iter_{}", target)))
      return fmt::format("no iterator over each {}", target);
  } else if (kind == "fentry" || kind == "fexit") {
    if (!kernel.has_function(target)) return fmt::format("no function {} (or inlined)", target);
    if (auto& why = kernel.fentry_refusal(); !why.empty()) return why;
  } else if (kind == "kprobe" || kind == "kretprobe") {
    if (auto& why = kernel.kprobe_refusal(target); !why.empty())
      return fmt::format("{}: {}", target, why);
  }
  return {};
}

std::string refusal(const Need& need, Kernel& kernel) {
  switch (need.kind) {
    case Need::field:
      if (!kernel.has_field(need.type, need.member))
        return fmt::format("no field {} in struct {}", need.member, need.type);
      break;
    case Need::function:
      if (!kernel.has_function(need.type)) return fmt::format("no function {}", need.type);
      break;
    case Need::arguments:
      if (int n = kernel.tracepoint_args(need.type); n != need.count)
        return n < 0 ? fmt::format("no tracepoint {}", need.type)
                     : fmt::format("tracepoint {} has {} arguments, not {}", need.type, n,
                                   need.count);
      break;
    case Need::enum_value:
      if (!kernel.has_enumerator(need.type, need.member))
        return fmt::format("no {} in enum {}", need.member, need.type);
      break;
  }
  return {};
}

/// Nobody can make the call that this program waits for.
bool awaits_foreign_syscall(std::string_view section) {
  constexpr std::string_view kEntry = "sys_enter_";
  auto [kind, target] = split_section(section);
  auto [category, name] = split_section(target);
  return kind == "tracepoint" && category == "syscalls" && name.starts_with(kEntry) &&
         is_foreign_syscall(name.substr(kEntry.size()));
}

void find_places(WayPlan& plan, std::string_view program, std::string_view target,
                 ProbeFinder& finder) {
  plan.lost_because = uprobe_refusal();
  if (!plan.lost_because.empty()) return;
  auto [library, symbol] = split_target(target);
  auto found = finder.find(library, symbol);
  if (found) {
    plan.places.emplace(program, std::move(*found));
    return;
  }
  auto& error = found.error();
  plan.lost_because = error.what + (error.why.empty() ? "" : ": " + error.why);
  plan.nowhere = error;
}

WayPlan judge(const Way& way, Kernel& kernel, bpf_object* object, const Refused& refused,
              ProbeFinder& finder) {
  WayPlan plan{&way, {}, {}};
  for (auto& need : way.needs)
    if (plan.lost_because.empty()) plan.lost_because = refusal(need, kernel);
  for (auto name : way.programs) {
    auto* program = bpf_object__find_program_by_name(object, std::string(name).c_str());
    if (!program) {
      plan.lost_because = fmt::format("the executable has no program {}", name);
      break;
    }
    std::string_view section = bpf_program__section_name(program);
    plan.targets.emplace_back(section);
    if (!plan.lost_because.empty()) continue;
    if (auto known = refused.find(name); known != refused.end())
      plan.lost_because = known->second;
    else if (is_probe(section))
      find_places(plan, name, split_section(section).target, finder);
    else
      plan.lost_because = refusal(section, kernel);
  }
  return plan;
}

}  // namespace

Result<Plan> make_plan(const Tool& tool, const Config& config, Kernel& kernel, bpf_object* object,
                       const Refused& refused) {
  Plan plan;
  ProbeFinder finder(config);
  auto limit = [&](std::string words) {
    if (std::find(plan.limits.begin(), plan.limits.end(), words) == plan.limits.end())
      plan.limits.push_back(std::move(words));
  };
  for (auto& hook : tool.hooks) {
    HookPlan h{&hook, config.holds(hook.when), -1, {}};
    for (auto& way : hook.ways) {
      // Asking costs time: nothing is asked about ways behind the chosen one, but --explain wants
      // all.
      if (h.chosen >= 0 && !config.given("explain")) break;
      h.ways.push_back(judge(way, kernel, object, refused, finder));
      if (h.wanted && h.chosen < 0 && h.ways.back().lost_because.empty())
        h.chosen = static_cast<int>(h.ways.size()) - 1;
    }
    if (h.wanted && h.chosen < 0) {
      std::string tried;
      for (auto& w : h.ways)
        tried += fmt::format("{}{} ({})", tried.empty() ? "tried " : "; ",
                             fmt::join(w.targets, " + "), w.lost_because);
      if (hook.optional.empty() && !h.ways.empty() && h.ways.front().nowhere) {
        auto& e = *h.ways.front().nowhere;
        return Error{fmt::format("nothing to trace: {}", e.what), e.why, e.hint, e.status};
      }
      if (hook.optional.empty())
        return Error{fmt::format("this kernel offers no way to trace: {}", hook.name), tried,
                     "coretap doctor tells what this kernel can do and which tools run",
                     kUnsupported};
      const bool lost = std::none_of(h.ways.begin(), h.ways.end(), [](const WayPlan& w) {
        return std::any_of(w.targets.begin(), w.targets.end(), awaits_foreign_syscall);
      });
      if (lost) plan.limits.push_back(fmt::format("{} ({})", hook.optional, tried));
    }
    if (h.chosen >= 0) {
      auto& chosen = h.ways[h.chosen];
      if (!chosen.way->limits.empty()) plan.limits.emplace_back(chosen.way->limits);
      for (auto& [program, places] : chosen.places)
        for (auto& file : places.left_out) limit("not traced: " + file);
    }
    plan.hooks.push_back(std::move(h));
  }
  return plan;
}

void select_programs(const Plan& plan, bpf_object* object, const std::set<std::string_view>& own) {
  std::set<std::string_view> wanted = own;
  for (auto& hook : plan.hooks)
    if (hook.chosen >= 0)
      wanted.insert(hook.ways[hook.chosen].way->programs.begin(),
                    hook.ways[hook.chosen].way->programs.end());
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object)
      bpf_program__set_autoload(program, wanted.contains(bpf_program__name(program)));
}

const std::vector<LibraryProgram>& library_programs() {
  static const std::vector<LibraryProgram> all = {
      {kFollowProgram, "children of the command", "with -- COMMAND"},
      {kTaskFreeProgram, "ends of tasks",
       "on kernels without task storage for tracing (before 5.12)"},
      {kUnwindPrograms[0], "processes that fork", "with user stacks, unless --unwind is fp or off"},
      {kUnwindPrograms[1], "processes that execute a program", "likewise"},
      {kUnwindPrograms[2], "processes that end", "likewise"},
  };
  return all;
}

const ProbePoints* Plan::places(std::string_view program) const {
  for (auto& hook : hooks) {
    if (hook.chosen < 0) continue;
    auto& all = hook.ways[hook.chosen].places;
    if (auto found = all.find(program); found != all.end()) return &found->second;
  }
  return nullptr;
}

namespace {

Error attach_error(const Section& section, int error) {
  return {fmt::format("cannot attach {}{}{}", section.kind, section.target.empty() ? "" : "/",
                      section.target),
          strerror(error),
          {},
          kUnsupported};
}

Result<Link> attach_event(bpf_program* program, const Section& section, perf_event_attr attr,
                          pid_t pid, int cpu) {
  attr.size = sizeof attr;
  Fd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) {
    auto error = attach_error(section, errno);
    error.why += perf_right_missing(errno);
    return error;
  }
  auto* link = bpf_program__attach_perf_event(program, event.get());
  if (!link) return attach_error(section, errno);
  event.release();  // the link closes it
  return Link(link);
}

/// A tick of each CPU's clock.
Result<Links> attach_clock(bpf_program* program, const Section& section, const Config& config,
                           const std::vector<int>& cpus) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  if (config.sample_period) {
    attr.sample_period = config.sample_period;
  } else {
    attr.freq = 1;
    attr.sample_freq = config.sample_hz;
  }
  Links links;
  for (int cpu : cpus) {
    if (config.cpu && static_cast<int>(*config.cpu) != cpu) continue;
    auto link = attach_event(program, section, attr, -1, cpu);
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  return links;
}

/// libbpf wants tracefs at its usual place; the ids may come from a private mount.
Result<Links> attach_tracepoints(bpf_program* program, const Section& section) {
  Links links;
  auto names = listed_tracepoints(section.target);
  for (auto& name : names) {
    auto id = classic_id(name);
    if (!id && names.size() > 1) continue;  // a call that this architecture does not have
    if (!id) return id.error();
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = static_cast<__u64>(*id);
    auto link = attach_event(program, section, attr, -1, 0);
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  if (links.empty()) return attach_error(section, ENOENT);
  return links;
}

/// Begin and end of a function lie at the same place.
std::vector<std::string> place_words(const WayPlan& way) {
  std::vector<std::string> all;
  for (auto& [program, places] : way.places)
    for (auto& p : places.points) {
      auto words = fmt::format("{}:{} at {:#x}", printable(p.path), p.symbol, p.offset);
      if (std::find(all.begin(), all.end(), words) == all.end()) all.push_back(std::move(words));
    }
  return all;
}

}  // namespace

Result<Links> attach_program(bpf_program* program, const Config& config, const Plan& plan) {
  auto section = split_section(bpf_program__section_name(program));
  if (auto* places = plan.places(bpf_program__name(program)))
    return attach_probes(program, config.pids, *places);
  if (section.kind == "tracepoint" || section.kind == "tp")
    return attach_tracepoints(program, section);
  if (section.kind == "iter") return Links();  // runs when it is read
  if (is_clock(program)) {
    auto links = attach_clock(program, section, config, online_cpus());
    if (links && links->empty()) return attach_error(section, ENODEV);
    return links;
  }
  auto* link = bpf_program__type(program) == BPF_PROG_TYPE_TRACING
                   ? bpf_program__attach_trace(program)  // load() has made it one
                   : bpf_program__attach(program);
  if (!link) return attach_error(section, errno);
  Links links;
  links.emplace_back(link);
  return links;
}

bool is_clock(const bpf_program* program) {
  return split_section(bpf_program__section_name(program)).kind == "perf_event";
}

Result<Links> attach_clocks(bpf_object* object, const Config& config,
                            const std::vector<int>& cpus) {
  Links all;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    if (!bpf_program__autoload(program) || !is_clock(program)) continue;
    auto links =
        attach_clock(program, split_section(bpf_program__section_name(program)), config, cpus);
    if (!links) return links.error();
    for (auto& link : *links) all.push_back(std::move(link));
  }
  return all;
}

std::string explain(const Plan& plan, bool losers) {
  std::string text;
  for (auto& h : plan.hooks) {
    if (!h.wanted) {
      if (losers)
        text += fmt::format("{}: not asked for (only {})\n", h.hook->name,
                            condition_words(h.hook->when));
      continue;
    }
    text += fmt::format("{}:\n", h.hook->name);
    for (std::size_t i = 0; i < h.ways.size(); i++) {
      auto& w = h.ways[i];
      bool chosen = static_cast<int>(i) == h.chosen;
      if (!chosen && !losers) continue;
      text += fmt::format("  {} {}{}\n", chosen ? "*" : "-", fmt::join(w.targets, " + "),
                          chosen                   ? ""
                          : w.lost_because.empty() ? ": possible, not needed"
                                                   : ": " + w.lost_because);
      if (w.lost_because.empty())
        for (auto& place : place_words(w)) text += fmt::format("      {}\n", place);
    }
    if (h.chosen < 0) text += fmt::format("  without: {}\n", h.hook->optional);
  }
  return text;
}

}  // namespace coretap
