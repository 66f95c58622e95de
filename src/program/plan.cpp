#include "program/plan.hpp"

#include <bpf/libbpf.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "coretap/config.hpp"
#include "coretap/json.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/syscalls.hpp"
#include "kernel/kernel.hpp"
#include "program/function_returns.hpp"
#include "program/perf_events.hpp"
#include "program/probe.hpp"
#include "program/section.hpp"

namespace coretap {

namespace {

bool is_trampoline(std::string_view kind) { return kind == "fentry" || kind == "fexit"; }

std::string trampoline_refusal(const FunctionName& place, Kernel& kernel) {
  auto& [function, module] = place;
  if (!kernel.has_function(function)) {
    if (module.empty() || !kernel.function_type(function, module))
      return fmt::format("no function {} (or inlined)", function);
    if (auto types = kernel.module_object(module); !types)
      return fmt::format("types of module {}: {}", module, types.error().why);
  }
  return kernel.fentry_refusal();
}

/// Why this kernel cannot attach a program with this section; empty if it can.
std::string refusal(std::string_view section, Kernel& kernel) {
  auto [kind, target] = split_section(section);
  if (kind == "tp_btf" || kind == "raw_tp") {
    if (kernel.tracepoint_args(target) < 0) return fmt::format("no tracepoint {}", target);
  } else if (kind == "tracepoint" || kind == "tp") {
    std::string why;
    for (auto& name : listed_tracepoints(target)) {
      auto id = listed_tracepoint_id(name);
      if (id || id.error().status == kFailed) return {};  // attaching says what has failed
      why = fmt::format("{}: {}", id.error().what, id.error().why);
    }
    return why;
  } else if (kind == "iter") {
    if (!kernel.has_function(fmt::format("bpf_iter_{}", target)))
      return fmt::format("no iterator over each {}", target);
  } else if (is_trampoline(kind)) {
    return trampoline_refusal({target, {}}, kernel);
  } else if (kind == "kprobe" || kind == "kretprobe") {
    if (auto& why = kernel.kprobe_refusal(target); !why.empty())
      return fmt::format("{}: {}", target, why);
  } else if (kind == kPerfEvent) {
    return perf_event_refusal(target);
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

/// True if only other architectures have the system call that this program waits for.
bool awaits_foreign_syscall(std::string_view section) {
  constexpr std::string_view kEntry = "sys_enter_";
  auto [kind, target] = split_section(section);
  auto [category, name] = split_section(target);
  return kind == "tracepoint" && category == "syscalls" && name.starts_with(kEntry) &&
         is_foreign_syscall(name.substr(kEntry.size()));
}

void find_places(CandidatePlan& plan, std::string_view program, const Section& section,
                 ProbeFinder& finder, ReturnProbes& returns) {
  plan.rejected_because = uprobe_refusal();
  if (!plan.rejected_because.empty()) return;
  auto [library, symbol] = split_target(section.target);
  auto found = finder.find(library, symbol);
  if (found) {
    for (auto& point : found->points) {
      if (section.kind != "uretprobe") break;
      auto probe = returns.of(point.file, symbol, point.offset, true);
      if (!probe.refusal.empty()) {
        plan.missing_symbol = cannot_probe_return(point.symbol, probe);
        plan.rejected_because = plan.missing_symbol->what + ": " + plan.missing_symbol->why;
        return;
      }
      point.returns = std::move(probe.offsets);
    }
    plan.places.emplace(program, std::move(*found));
    return;
  }
  auto& error = found.error();
  plan.rejected_because = error.what + (error.why.empty() ? "" : ": " + error.why);
  plan.missing_symbol = error;
}

CandidatePlan judge(const Candidate& way, const Config& config, Kernel& kernel, bpf_object* object,
                    const Refused& refused, ProbeFinder& finder, ReturnProbes& returns) {
  CandidatePlan plan{&way, {}, {}};
  for (auto& need : way.needs)
    if (plan.rejected_because.empty()) plan.rejected_because = refusal(need, kernel);
  for (auto name : way.programs) {
    auto* program = bpf_object__find_program_by_name(object, std::string(name).c_str());
    if (!program) {
      plan.rejected_because = fmt::format("the executable has no program {}", name);
      break;
    }
    std::string_view section = bpf_program__section_name(program);
    auto [kind, word] = split_section(section);
    FunctionName place;
    if (way.function_of && is_trampoline(kind)) place = way.function_of(config, word);
    plan.targets.push_back(place.function.empty() ? std::string(section)
                                                  : fmt::format("{}/{}", kind, place.function));
    if (!plan.rejected_because.empty()) continue;
    if (auto known = refused.find(name); known != refused.end())
      plan.rejected_because = known->second;
    else if (way.function_of && is_trampoline(kind) && place.function.empty())
      plan.rejected_because = fmt::format("only with {}", way.only);
    else if (way.function_of && is_trampoline(kind))
      plan.rejected_because = trampoline_refusal(place, kernel);
    else if (is_probe(section))
      find_places(plan, name, split_section(section), finder, returns);
    else
      plan.rejected_because = refusal(section, kernel);
    if (!place.function.empty()) plan.functions[name] = place;
  }
  return plan;
}

/// Plans a hook whose words come from the command line.
Result<void> plan_targets(Plan& plan, HookPlan& h, const Config& config, Kernel& kernel,
                          const Refused& refused, ProbeFinder& finder) {
  auto words = config.probes.known.empty() ? h.hook->targets(config) : config.probes.known;
  if (words.empty() && h.hook->targets != words_of_command_line && !h.hook->by_word)
    return Error{fmt::format("there is nothing to trace: {}", h.hook->name),
                 fmt::format("tried {}: none has them, or no symbols",
                             !config.probes.library.empty() ? printable(config.probes.library)
                             : config.tasks.pids.empty()
                                 ? "programs and libraries that are installed or running"
                                 : "the processes of --pid"),
                 std::string(h.hook->instead), kUnsupported};
  auto found = find_targets(words, *h.hook, config, kernel, finder);
  if (!found) {
    auto& e = found.error();
    if (e.status != kUnsupported || h.hook->instead.empty()) return e;
    return Error{fmt::format("this kernel offers no way to trace: {}", h.hook->name),
                 fmt::format("tried {} ({})", fmt::join(words, " + "), e.why),
                 std::string(h.hook->instead), kUnsupported};
  }
  plan.targets = std::move(*found);
  plan.means = TargetMeans::of(kernel, plan.targets);
  if (auto r = check_number(plan.targets, plan.means, config); !r) return r;
  auto& way = h.hook->candidates.front();
  h.candidates.push_back({&way, target_words(plan.targets, plan.means), {}});
  h.chosen = 0;
  for (auto name : way.programs)
    if (auto known = refused.find(name); known != refused.end())
      return Error{fmt::format("this kernel offers no way to trace: {}", h.hook->name),
                   known->second,
                   {},
                   kUnsupported};
  plan.limits.insert(plan.limits.end(), plan.targets.left_out.begin(), plan.targets.left_out.end());
  return {};
}

}  // namespace

Result<Plan> make_plan(const Tool& tool, const Config& config, Kernel& kernel, bpf_object* object,
                       const Refused& refused) {
  Plan plan;
  ProbeFinder finder(config);
  ReturnProbes returns(config.given("return-trampoline"));
  auto limit = [&](std::string words) {
    if (std::find(plan.limits.begin(), plan.limits.end(), words) == plan.limits.end())
      plan.limits.push_back(std::move(words));
  };
  for (auto& hook : tool.hooks) {
    HookPlan h{&hook, config.holds(hook.when), -1, {}};
    if (hook.targets && h.wanted) {
      auto r = plan_targets(plan, h, config, kernel, refused, finder);
      if (!r) return r.error();
      plan.hooks.push_back(std::move(h));
      continue;
    }
    for (auto& way : hook.candidates) {
      // Checks take time: candidates after the chosen one are checked only for
      // --explain.
      if (h.chosen >= 0 && !config.given("explain")) break;
      h.candidates.push_back(judge(way, config, kernel, object, refused, finder, returns));
      if (h.wanted && h.chosen < 0 && h.candidates.back().rejected_because.empty())
        h.chosen = static_cast<int>(h.candidates.size()) - 1;
    }
    if (h.wanted && h.chosen < 0) {
      std::string tried;
      for (auto& w : h.candidates)
        tried += fmt::format("{}{} ({})", tried.empty() ? "tried " : "; ",
                             fmt::join(w.targets, " + "), w.rejected_because);
      if (hook.optional.empty() && !h.candidates.empty() && h.candidates.front().missing_symbol) {
        auto& e = *h.candidates.front().missing_symbol;
        return Error{fmt::format("nothing to trace: {}", e.what), e.why, e.hint, e.status};
      }
      if (hook.optional.empty())
        return Error{fmt::format("this kernel offers no way to trace: {}", hook.name), tried,
                     hook.instead.empty()
                         ? "coretap doctor tells what this kernel can do and which tools run"
                         : std::string(hook.instead),
                     kUnsupported};
      const bool lost =
          std::none_of(h.candidates.begin(), h.candidates.end(), [](const CandidatePlan& w) {
            return std::any_of(w.targets.begin(), w.targets.end(), awaits_foreign_syscall);
          });
      if (lost) plan.limits.push_back(fmt::format("{} ({})", hook.optional, tried));
    }
    if (h.chosen >= 0) {
      auto& chosen = h.candidates[h.chosen];
      if (!chosen.way->caveat.empty()) plan.limits.emplace_back(chosen.way->caveat);
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
      wanted.insert(hook.candidates[hook.chosen].way->programs.begin(),
                    hook.candidates[hook.chosen].way->programs.end());
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    bool load = wanted.contains(bpf_program__name(program));
    // Of programs on targets, loads only those that have a place to attach to.
    if (auto kind = kind_of(bpf_program__section_name(program));
        kind && std::string_view(bpf_program__name(program)).starts_with("target_"))
      load = load && plan.targets.count(*kind) > 0;
    bpf_program__set_autoload(program, load);
  }
}

const std::vector<LibraryProgram>& library_programs() {
  static const std::vector<LibraryProgram> all = {
      {kFollowProgram, "children of the command", "with -- COMMAND"},
      {kTaskFreeProgram, "ends of tasks",
       "on kernels without task storage for tracing (before 5.12)"},
      {kLongFreeProgram, "ends of threads", "to give back the memory of long texts"},
      {kUnwindPrograms[0], "processes that fork", "with user stacks, unless --unwind is fp or off"},
      {kUnwindPrograms[1], "processes that execute a program", "likewise"},
      {kUnwindPrograms[2], "processes that end", "likewise"},
      {kUnwindPrograms[3], "identities of mapped files", "likewise"},
  };
  return all;
}

bool Plan::has(std::string_view program) const {
  return std::any_of(hooks.begin(), hooks.end(), [&](auto& hook) {
    if (hook.chosen < 0) return false;
    auto& programs = hook.candidates[hook.chosen].way->programs;
    return std::find(programs.begin(), programs.end(), program) != programs.end();
  });
}

const ProbePoints* Plan::places(std::string_view program) const {
  for (auto& hook : hooks) {
    if (hook.chosen < 0) continue;
    auto& all = hook.candidates[hook.chosen].places;
    if (auto found = all.find(program); found != all.end()) return &found->second;
  }
  return nullptr;
}

FunctionName Plan::function(std::string_view program, std::string_view section) const {
  for (auto& hook : hooks) {
    if (hook.chosen < 0) continue;
    auto& all = hook.candidates[hook.chosen].functions;
    if (auto found = all.find(program); found != all.end()) return found->second;
  }
  return {split_section(section).target, {}};
}

Sampling Plan::sampling(std::string_view program) const {
  for (auto& hook : hooks) {
    if (hook.chosen < 0) continue;
    auto& programs = hook.candidates[hook.chosen].way->programs;
    if (std::find(programs.begin(), programs.end(), program) != programs.end())
      return hook.hook->sampling;
  }
  return {};
}

namespace {

/// Entry and return of a function have the same place: lists it once.
std::vector<std::string> place_words(const CandidatePlan& way) {
  std::vector<std::string> all;
  for (auto& [program, places] : way.places)
    for (auto& p : places.points) {
      auto words = fmt::format("{}:{} at {:#x}", printable(p.path), p.symbol, p.offset);
      if (std::find(all.begin(), all.end(), words) == all.end()) all.push_back(std::move(words));
    }
  return all;
}

}  // namespace

std::string explain(const Plan& plan, bool losers) {
  std::string text;
  if (losers) text += "attach points by purpose (*: used here, -: not used)\n";
  for (auto& h : plan.hooks) {
    if (!h.wanted) {
      if (losers)
        text += fmt::format("{}: not asked for (only {})\n", h.hook->name,
                            condition_words(h.hook->when));
      continue;
    }
    text += fmt::format("{}:\n", h.hook->name);
    for (std::size_t i = 0; i < h.candidates.size(); i++) {
      auto& w = h.candidates[i];
      bool chosen = static_cast<int>(i) == h.chosen;
      if (!chosen && !losers) continue;
      auto targets = w.targets.empty() ? "nothing, as others do this here"
                                       : fmt::format("{}", fmt::join(w.targets, " + "));
      text += fmt::format("  {} {}{}\n", chosen ? "*" : "-", targets,
                          chosen                       ? ""
                          : w.rejected_because.empty() ? ": possible, not needed"
                                                       : ": " + w.rejected_because);
      if (w.rejected_because.empty())
        for (auto& place : place_words(w)) text += fmt::format("      {}\n", place);
    }
    if (h.chosen < 0) text += fmt::format("  without: {}\n", h.hook->optional);
  }
  return text;
}

std::vector<std::string> explain_json(const Plan& plan, std::string_view tool) {
  std::vector<std::string> lines;
  for (auto& h : plan.hooks) {
    JsonLine line;
    line.text("type", "hook").text("tool", tool).text("hook", h.hook->name);
    line.boolean("wanted", h.wanted);
    line.key("without");
    if (h.hook->optional.empty())
      line.null();
    else
      line.text(h.hook->optional);
    line.key("candidates").begin_array();
    for (std::size_t i = 0; i < h.candidates.size(); i++) {
      auto& w = h.candidates[i];
      line.begin_object().key("attach_points").begin_array();
      for (auto& target : w.targets) line.text(target);
      line.end_array().boolean("used", static_cast<int>(i) == h.chosen).key("refused");
      if (w.rejected_because.empty())
        line.null();
      else
        line.text(w.rejected_because);
      line.key("places").begin_array();
      for (auto& place : place_words(w)) line.text(place);
      line.end_array().end_object();
    }
    line.end_array();
    lines.emplace_back(line.finish());
  }
  for (auto& limit : plan.limits) {
    JsonLine line;
    line.text("type", "limit").text("tool", tool).text("limit", limit);
    lines.emplace_back(line.finish());
  }
  return lines;
}

}  // namespace coretap
