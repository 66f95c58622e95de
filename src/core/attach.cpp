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
#include "core/kernel.hpp"
#include "docs/help.hpp"

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

Result<std::vector<Link>> attach_program(bpf_program* program) {
  std::vector<Link> links;
  auto section = split_section(bpf_program__section_name(program));
  auto failed = [&](int error) {
    return Error{fmt::format("cannot attach {}/{}", section.kind, section.target),
                 strerror(error),
                 {},
                 kUnsupported};
  };
  bpf_link* link = nullptr;
  if (section.kind == "tracepoint" || section.kind == "tp") {
    // libbpf wants tracefs at its usual place; the id may come from a private mount.
    auto names = listed_tracepoints(section.target);
    for (auto& name : names) {
      auto id = classic_id(name);
      if (!id && names.size() > 1) continue;  // a call that this architecture does not have
      if (!id) return id.error();
      perf_event_attr attr{};
      attr.size = sizeof attr;
      attr.type = PERF_TYPE_TRACEPOINT;
      attr.config = static_cast<__u64>(*id);
      int fd =
          static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
      if (fd < 0) return failed(errno);
      link = bpf_program__attach_perf_event(program, fd);
      if (!link) {
        int error = errno;
        close(fd);
        return failed(error);
      }
      links.emplace_back(link);
    }
    if (links.empty()) return failed(ENOENT);
    return links;
  } else if (bpf_program__type(program) == BPF_PROG_TYPE_TRACING) {
    link = bpf_program__attach_trace(program);  // load() has made it one
  } else {
    link = bpf_program__attach(program);
  }
  if (!link) return failed(errno);
  links.emplace_back(link);
  return links;
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
