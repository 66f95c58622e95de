#include "core/attach.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/config.hpp"
#include "core/fd.hpp"
#include "core/kernel.hpp"
#include "docs/help.hpp"

namespace coretap {

Section split_section(std::string_view section) {
  auto slash = section.find('/');
  if (slash == std::string_view::npos) return {section, {}};
  return {section.substr(0, slash), section.substr(slash + 1)};
}

namespace {

/// Why this kernel cannot attach a program with this section; empty if it can.
std::string refusal(std::string_view section, Kernel& kernel) {
  auto [kind, target] = split_section(section);
  if (kind == "tp_btf" || kind == "raw_tp") {
    if (kernel.tracepoint_args(target) < 0) return fmt::format("no tracepoint {}", target);
  } else if (kind == "tracepoint" || kind == "tp") {
    auto slash = target.find('/');
    auto id = tracepoint_id(target.substr(0, slash),
                            slash == target.npos ? "" : target.substr(slash + 1));
    if (!id) return fmt::format("{}: {}", id.error().what, id.error().why);
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

WayPlan judge(const Way& way, Kernel& kernel, bpf_object* object, const Refused& refused) {
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
    else
      plan.lost_because = refusal(section, kernel);
  }
  return plan;
}

}  // namespace

Result<Plan> make_plan(const Tool& tool, const Config& config, Kernel& kernel, bpf_object* object,
                       const Refused& refused) {
  Plan plan;
  for (auto& hook : tool.hooks) {
    HookPlan h{&hook, config.holds(hook.when), -1, {}};
    for (auto& way : hook.ways) {
      // Asking costs time: nothing is asked about ways behind the chosen one, but --explain wants
      // all.
      if (h.chosen >= 0 && !config.given("explain")) break;
      h.ways.push_back(judge(way, kernel, object, refused));
      if (h.wanted && h.chosen < 0 && h.ways.back().lost_because.empty())
        h.chosen = static_cast<int>(h.ways.size()) - 1;
    }
    if (h.wanted && h.chosen < 0) {
      std::string tried;
      for (auto& w : h.ways)
        tried += fmt::format("{}{} ({})", tried.empty() ? "tried " : "; ",
                             fmt::join(w.targets, " + "), w.lost_because);
      if (hook.optional.empty())
        return Error{fmt::format("this kernel offers no way to trace: {}", hook.name), tried,
                     "coretap doctor tells what this kernel can do and which tools run",
                     kUnsupported};
      plan.limits.push_back(fmt::format("{} ({})", hook.optional, tried));
    }
    if (h.chosen >= 0 && !h.ways[h.chosen].way->limits.empty())
      plan.limits.emplace_back(h.ways[h.chosen].way->limits);
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
  };
  return all;
}

void LinkDeleter::operator()(bpf_link* link) const { bpf_link__destroy(link); }

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
  if (!event) return attach_error(section, errno);
  auto* link = bpf_program__attach_perf_event(program, event.get());
  if (!link) return attach_error(section, errno);
  event.release();  // the link closes it
  return Link(link);
}

/// A tick of the CPU's clock, on all CPUs that are there now.
Result<std::vector<Link>> attach_clock(bpf_program* program, const Section& section,
                                       const Config& config) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  if (config.sample_period) {
    attr.sample_period = config.sample_period;
  } else {
    attr.freq = 1;
    attr.sample_freq = config.sample_hz;
  }
  std::vector<Link> links;
  for (int cpu : online_cpus()) {
    if (config.cpu && static_cast<int>(*config.cpu) != cpu) continue;
    auto link = attach_event(program, section, attr, -1, cpu);
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  if (links.empty()) return attach_error(section, ENODEV);
  return links;
}

/// libbpf wants tracefs at its usual place; the id may come from a private mount.
Result<Link> attach_tracepoint(bpf_program* program, const Section& section) {
  auto [category, name] = split_section(section.target);
  auto id = tracepoint_id(category, name);
  if (!id) return id.error();
  perf_event_attr attr{};
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = static_cast<__u64>(*id);
  return attach_event(program, section, attr, -1, 0);
}

Result<std::vector<Link>> only(Result<Link> link) {
  if (!link) return link.error();
  std::vector<Link> links;
  links.push_back(std::move(*link));
  return links;
}

}  // namespace

Result<std::vector<Link>> attach_program(bpf_program* program, const Config& config) {
  auto section = split_section(bpf_program__section_name(program));
  if (section.kind == "tracepoint" || section.kind == "tp")
    return only(attach_tracepoint(program, section));
  if (section.kind == "perf_event") return attach_clock(program, section, config);
  auto* link = bpf_program__type(program) == BPF_PROG_TYPE_TRACING
                   ? bpf_program__attach_trace(program)  // load() has made it one
                   : bpf_program__attach(program);
  if (!link) return attach_error(section, errno);
  return only(Link(link));
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
    }
    if (h.chosen < 0) text += fmt::format("  without: {}\n", h.hook->optional);
  }
  return text;
}

}  // namespace coretap
