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
#include "kernel/perf_events.hpp"
#include "program/function_returns.hpp"
#include "program/section.hpp"
#include "program/uprobe_proof.hpp"

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
std::string refusal(const Section& section, Kernel& kernel) {
  auto& [kind, target] = section;
  if (kind == "tp_btf" || kind == "raw_tp") {
    if (kernel.tracepoint_args(target) < 0) return fmt::format("no tracepoint {}", target);
  } else if (kind == "tracepoint") {
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
  } else if (kind == kPerfEvent) {
    return perf_event_refusal(target);
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

/// True if only other architectures have the system call that this program waits for.
bool awaits_foreign_syscall(std::string_view section) {
  constexpr std::string_view kEntry = "sys_enter_";
  auto [kind, target] = split_section(section);
  auto [category, name] = split_section(target);
  return kind == "tracepoint" && category == "syscalls" && name.starts_with(kEntry) &&
         is_foreign_syscall(name.substr(kEntry.size()));
}

/// Functions can have the same code (aligned_alloc and memalign of glibc): once.
void add(ProbePoints& all, ProbePoints more) {
  for (auto& point : more.points)
    if (std::ranges::none_of(
            all.points, [&](auto& p) { return p.offset == point.offset && p.file == point.file; }))
      all.points.push_back(std::move(point));
  std::ranges::move(more.left_out, std::back_inserter(all.left_out));
}

/// Finds the places of a program on a user function.
Result<ProbePoints> find_places(const Section& section, unsigned arguments, ProbeFinder& finder,
                                ReturnProbes& returns) {
  auto [library, symbol] = split_target(section.target);
  auto found = finder.find(library, symbol);
  if (!found) return found;
  for (auto& point : found->points) {
    point.probed = returns.code(point.file).entry_place(point.offset, {arguments}, false);
    if (section.kind != "uretprobe") continue;
    auto probe = returns.of(point.file, symbol, point.offset, true);
    if (!probe.refusal.empty()) return cannot_probe_return(point.symbol, probe);
    point.returns = std::move(probe.offsets);
  }
  return found;
}

class Judge {
 public:
  Judge(const Config& config, Kernel& kernel, bpf_object* object, const Refused& refused,
        ProbeFinder& finder)
      : config_(config), kernel_(kernel), object_(object), refused_(refused), finder_(finder) {}

  /// `event`: of Hook.
  CandidatePlan judge(const Candidate& way, std::size_t event) {
    CandidatePlan plan{&way, {}, {}};
    for (auto& need : way.needs)
      if (plan.rejected_because.empty()) plan.rejected_because = refusal(need, kernel_);
    entered_ = nullptr;
    for (auto name : way.programs) {
      auto* program = bpf_object__find_program_by_name(object_, name.c_str());
      if (!program) {
        plan.rejected_because = fmt::format("the executable has no program {}", name.c_str());
        break;
      }
      auto why = judge(plan, name, program, event);
      if (plan.rejected_because.empty()) plan.rejected_because = std::move(why);
    }
    return plan;
  }

 private:
  /// Adds what the program attaches to. -> why this kernel cannot attach it; empty: it can
  std::string judge(CandidatePlan& plan, std::string_view name, const bpf_program* program,
                    std::size_t event) {
    auto section = section_of(program);
    // The place of the return depends on the arguments that the program at the entry reads.
    if (is_probe(section) && section.target != kSameFunction) entered_ = program;
    if (is_probe(section) && entered_) section.target = section_of(entered_).target;
    auto& way = *plan.way;
    FunctionName place;
    const bool by_word = way.function_of && is_trampoline(section.kind);
    if (by_word) place = way.function_of(config_, section.target);
    if (auto& asked = config_.sampling.events; section.kind == kPerfEvent && event < asked.size())
      plan.targets.push_back(fmt::format("{}/{}", section.kind, asked[event]));
    else
      plan.targets.push_back(place.function.empty()
                                 ? section.text()
                                 : fmt::format("{}/{}", section.kind, place.function));
    if (!place.function.empty()) plan.functions[name] = place;
    if (!plan.rejected_because.empty()) return {};
    if (auto known = refused_.find(name); known != refused_.end()) return known->second;
    if (by_word && place.function.empty()) return fmt::format("only with {}", way.only);
    if (by_word) return trampoline_refusal(place, kernel_);
    if (!is_probe(section)) return refusal(section, kernel_);
    if (auto works = uprobes_work(); !works) {
      auto& error = works.error();
      return error.why + (error.hint.empty() ? "" : ": " + error.hint);
    }
    auto places = find_places(section, arguments_read(entered_), finder_, returns_);
    if (places) add(plan.places[name], std::move(*places));
    if (places) return {};
    auto& error = plan.missing_symbol.emplace(places.error());
    return error.what + (error.why.empty() ? "" : ": " + error.why);
  }

  const bpf_program* entered_ = nullptr;  ///< the last program on a user function
  const Config& config_;
  Kernel& kernel_;
  bpf_object* object_;
  const Refused& refused_;
  ProbeFinder& finder_;
  ReturnProbes returns_{config_.given("return-trampoline")};
};

Error no_way(const Hook& hook, std::string tried) {
  return {fmt::format("this kernel offers no way to trace: {}", hook.name), std::move(tried),
          std::string(hook.instead), kUnsupported};
}

/// Plans a hook whose words come from the command line.
Result<void> plan_targets(Plan& plan, HookPlan& h, const Config& config, Kernel& kernel,
                          const Refused& refused, ProbeFinder& finder) {
  auto& hook = *h.hook;
  auto words = config.probes.known.empty() ? hook.targets(config) : config.probes.known;
  if (words.empty() && hook.targets != words_of_command_line && !hook.by_word)
    return Error{fmt::format("there is nothing to trace: {}", hook.name),
                 fmt::format("tried {}: none has them, or no symbols",
                             !config.probes.library.empty() ? printable(config.probes.library)
                             : config.tasks.pids.empty()
                                 ? "programs and libraries that are installed or running"
                                 : "the processes of --pid"),
                 std::string(hook.instead), kUnsupported};
  auto found = find_targets(words, hook, config, kernel, finder);
  if (!found) {
    auto& e = found.error();
    if (e.status != kUnsupported || hook.instead.empty()) return e;
    return no_way(hook, fmt::format("tried {} ({})", fmt::join(words, " + "), e.why));
  }
  plan.targets = std::move(*found);
  plan.means = TargetMeans::of(kernel, plan.targets);
  if (auto r = check_number(plan.targets, plan.means, config); !r) return r;
  auto& way = hook.candidates.front();
  h.candidates.push_back({&way, target_words(plan.targets, plan.means), {}});
  h.chosen = 0;
  for (auto name : way.programs)
    if (auto known = refused.find(name.c_str()); known != refused.end()) {
      auto error = no_way(hook, known->second);
      error.hint.clear();
      return error;
    }
  plan.limits.insert(plan.limits.end(), plan.targets.left_out.begin(), plan.targets.left_out.end());
  if (config.given("kernel-stack") && plan.targets.count(TargetPoint::user) +
                                          plan.targets.count(TargetPoint::user_return) +
                                          plan.targets.count(TargetPoint::usdt))
    plan.limits.emplace_back("user functions have no kernel stack");
  return {};
}

constexpr std::size_t kShownTried = 4;  // attach points for each reason

/// "tried kprobe/a, kprobe/b (reason); fentry/c (another reason)": each reason once.
std::string tried_words(const HookPlan& h) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (auto& w : h.candidates) {
    auto same = std::ranges::find(by_reason, w.rejected_because, [](auto& r) { return r.first; });
    if (same == by_reason.end()) same = by_reason.insert(same, {w.rejected_because, {}});
    for (auto& target : w.targets)
      if (std::ranges::find(same->second, target) == same->second.end())
        same->second.push_back(target);
  }
  std::string text;
  for (auto& [reason, targets] : by_reason) {
    const auto more = targets.size() > kShownTried ? targets.size() - kShownTried : 0;
    targets.resize(targets.size() - more);
    text += fmt::format("{}{}{} ({})", text.empty() ? "tried " : "; ", fmt::join(targets, ", "),
                        more ? fmt::format(" and {} more", more) : "", reason);
  }
  return text;
}

/// A hook that no candidate serves: an error if the tool requires it, else a limit.
Result<void> go_without(Plan& plan, const HookPlan& h) {
  auto& hook = *h.hook;
  auto tried = tried_words(h);
  if (!hook.optional.empty()) {
    const bool foreign = std::ranges::any_of(h.candidates, [](auto& w) {
      return std::ranges::any_of(w.targets, awaits_foreign_syscall);
    });
    if (!foreign) plan.limits.push_back(fmt::format("{} ({})", hook.optional, tried));
    return {};
  }
  if (!h.candidates.empty() && h.candidates.front().missing_symbol) {
    auto e = *h.candidates.front().missing_symbol;
    e.what = fmt::format("nothing to trace: {}", e.what);
    return e;
  }
  auto error = no_way(hook, std::move(tried));
  if (error.hint.empty())
    error.hint = "coretap doctor tells what this kernel can do and which tools run";
  return error;
}

/// Why entries are where they are; empty: the kernel has answered the test, or there are none.
std::string untested_words(const Plan& plan) {
  using symbols::EntryStep;
  bool any = std::ranges::any_of(plan.targets.points, [](auto& p) {
    return p.file && !p.within && p.probed.form == EntryStep::stepped;
  });
  for (auto& h : plan.hooks)
    if (auto* used = h.used())
      for (auto& [program, places] : used->places)
        any |= std::ranges::any_of(places.points,
                                   [](auto& p) { return p.probed.form == EntryStep::stepped; });
  auto why = any ? probes_refused() : "";
  return why.empty() ? why
                     : fmt::format(
                           "entries are probed at their first instructions, as a test of "
                           "which ones the kernel emulates was refused ({})",
                           why);
}

}  // namespace

Result<Plan> make_plan(const Tool& tool, const Config& config, Kernel& kernel, bpf_object* object,
                       const Refused& refused) {
  Plan plan;
  ProbeFinder finder(config);
  // Also for hooks that the tool can do without: the user has named the file.
  if (auto& library = config.probes.library; library.find('/') != library.npos)
    if (auto& files = finder.files(library); !files) return files.error();
  Judge judge(config, kernel, object, refused, finder);
  for (auto& hook : tool.hooks) {
    const bool has_event = !hook.event || hook.event < config.sampling.events.size();
    HookPlan h{&hook, has_event && config.holds(hook.when), -1, {}};
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
      h.candidates.push_back(judge.judge(way, hook.event));
      if (h.wanted && h.chosen < 0 && h.candidates.back().rejected_because.empty())
        h.chosen = static_cast<int>(h.candidates.size()) - 1;
    }
    if (auto* chosen = h.used()) {
      if (!chosen->way->caveat.empty()) plan.limits.emplace_back(chosen->way->caveat);
      for (auto& [program, places] : chosen->places)
        for (auto& file : places.left_out)
          if (auto limit = "not traced: " + file;
              std::ranges::find(plan.limits, limit) == plan.limits.end())
            plan.limits.push_back(std::move(limit));
    } else if (h.wanted) {
      if (auto r = go_without(plan, h); !r) return r.error();
    }
    plan.hooks.push_back(std::move(h));
  }
  if (config.given("explain") || config.given("verbose"))
    if (auto words = untested_words(plan); !words.empty()) plan.limits.push_back(std::move(words));
  return plan;
}

void select_programs(const Plan& plan, bpf_object* object, const std::set<std::string_view>& own) {
  for (auto* program : programs_of(object)) {
    const std::string_view name = bpf_program__name(program);
    bool load = own.contains(name) || plan.hook_of(name);
    // Of programs on targets, loads only those that have a place to attach to.
    if (auto kind = kind_of(program)) load = load && plan.targets.count(*kind) > 0;
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

const HookPlan* Plan::hook_of(std::string_view program) const {
  auto found = std::ranges::find_if(hooks, [&](auto& hook) {
    auto* used = hook.used();
    return used && std::ranges::find(used->way->programs, program) != used->way->programs.end();
  });
  return found == hooks.end() ? nullptr : &*found;
}

std::optional<ProbePoints> Plan::places(std::string_view program) const {
  std::optional<ProbePoints> all;
  for (auto& hook : hooks) {
    auto* used = hook.used();
    if (!used || !used->places.contains(program)) continue;
    if (!all) all.emplace();
    add(*all, used->places.at(program));
  }
  return all;
}

FunctionName Plan::function(const bpf_program* program) const {
  const std::string_view name = bpf_program__name(program);
  if (auto* hook = hook_of(name))
    if (auto found = hook->used()->functions.find(name); found != hook->used()->functions.end())
      return found->second;
  return {section_of(program).target, {}};
}

Sampling Plan::sampling(std::string_view program) const {
  auto* hook = hook_of(program);
  return hook ? hook->hook->sampling : Sampling{};
}

namespace {

/// Entry and return of a function have the same place: lists it once.
std::vector<std::string> place_words(const CandidatePlan& way) {
  std::vector<std::string> all;
  for (auto& [program, places] : way.places)
    for (auto& p : places.points) {
      auto words = fmt::format("{}:{} at {:#x}{}", printable(p.path), p.symbol, p.probed.offset,
                               is_stepped(p.probed.form) ? ", in single-step mode" : "");
      if (std::ranges::find(all, words) == all.end()) all.push_back(std::move(words));
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
    for (auto& w : h.candidates) {
      const bool chosen = &w == h.used();
      if (!chosen && !losers) continue;
      text += fmt::format("  {} {}{}\n", chosen ? "*" : "-",
                          w.targets.empty() ? "nothing, as others do this here"
                                            : fmt::format("{}", fmt::join(w.targets, " + ")),
                          chosen                       ? ""
                          : w.rejected_because.empty() ? ": possible, not needed"
                                                       : ": " + w.rejected_because);
      if (w.rejected_because.empty())
        for (auto& place : place_words(w)) text += fmt::format("      {}\n", place);
      if (chosen && h.hook->targets)
        if (auto words = stepped_words(plan.targets); !words.empty())
          text += fmt::format("      {}\n", words);
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
    line.boolean("wanted", h.wanted)
        .text_if(!h.hook->optional.empty(), "without", h.hook->optional);
    line.key("candidates").begin_array();
    for (auto& w : h.candidates)
      line.begin_object()
          .texts("attach_points", w.targets)
          .boolean("used", &w == h.used())
          .text_if(!w.rejected_because.empty(), "refused", w.rejected_because)
          .texts("places", place_words(w))
          .end_object();
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
