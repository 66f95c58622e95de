// Chooses, for each hook, the first candidate that this kernel can attach, and explains the choice.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "coretap/tool.hpp"
#include "program/probe_target.hpp"
#include "program/targets.hpp"

struct bpf_object;
struct bpf_program;

namespace coretap {

class Config;
class Kernel;

/// The result of checking one candidate.
struct CandidatePlan {
  const Candidate* way;
  std::vector<std::string> targets;                         ///< sections: "tp_btf/sched_switch"
  std::string rejected_because;                             ///< empty: usable
  std::map<std::string_view, ProbePoints> places = {};      ///< of programs on user functions
  std::optional<Error> missing_symbol = {};                 ///< no file has such a function
  std::map<std::string_view, FunctionName> functions = {};  ///< that words in sections name
};

struct HookPlan {
  const Hook* hook;
  bool wanted = true;  ///< its condition is true
  int chosen = -1;     ///< index in `candidates`
  std::vector<CandidatePlan> candidates;

  /// The chosen one; null: none.
  const CandidatePlan* used() const { return chosen < 0 ? nullptr : &candidates[chosen]; }
};

struct Plan {
  std::vector<HookPlan> hooks;
  std::vector<std::string> limits;  ///< limitations on this kernel, for the user
  Targets targets;                  ///< of hooks whose words come from the command line
  TargetMeans means;

  /// The hook that has chosen this program; null: none.
  const HookPlan* hook_of(std::string_view program) const;
  bool has(ProgramName program) const { return hook_of(program) != nullptr; }
  /// The places of a chosen program on user functions, of all hooks; null: it is not one.
  std::optional<ProbePoints> places(std::string_view program) const;
  /// The target function of a chosen fentry or fexit program.
  FunctionName function(const bpf_program* program) const;
  /// The default sampling rate of a chosen program on a perf event, from its hook.
  Sampling sampling(std::string_view program) const;
};

/// Candidates that passed the checks but failed to attach: "program" -> reason.
using Refused = std::map<std::string, std::string, std::less<>>;

/// Fails (exit status 3) if a required hook has no usable candidate on this kernel.
Result<Plan> make_plan(const Tool& tool, const Config& config, Kernel& kernel, bpf_object* object,
                       const Refused& refused);

/// Enables exactly the programs that the plan has chosen; `own`: programs of the library to enable.
void select_programs(const Plan& plan, bpf_object* object, const std::set<std::string_view>& own);

/// Programs in bpf/lib; the library enables them itself, without a tool's hook.
inline constexpr ProgramName kFollowProgram("filter_follow");
inline constexpr ProgramName kTaskFreeProgram("task_slot_free");
inline constexpr ProgramName kLongFreeProgram("long_record_free");
/// They maintain the tables of processes that fork, exec or exit; the last one looks up which file
/// this process has mapped at an address.
inline constexpr std::array kUnwindPrograms = {
    ProgramName("unwind_fork"), ProgramName("unwind_exec"), ProgramName("unwind_exit"),
    ProgramName("unwind_ask_key")};
struct LibraryProgram {
  ProgramName name;
  std::string_view purpose, when;
};
const std::vector<LibraryProgram>& library_programs();

/// The plan as text, for --explain and -v.
std::string explain(const Plan& plan, bool losers);
/// The same as JSON lines, for --explain with --json.
std::vector<std::string> explain_json(const Plan& plan, std::string_view tool);

}  // namespace coretap
