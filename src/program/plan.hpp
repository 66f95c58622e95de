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

namespace coretap {

class Config;
class Kernel;

/// What one way came to.
struct CandidatePlan {
  const Candidate* way;
  std::vector<std::string> targets;                         ///< sections: "tp_btf/sched_switch"
  std::string rejected_because;                             ///< empty: usable
  std::map<std::string_view, ProbePoints> places = {};      ///< of programs on user functions
  std::optional<Error> missing_symbol = {};                 ///< no file has such a function
  std::map<std::string_view, FunctionName> functions = {};  ///< that words of sections stand for
};

struct HookPlan {
  const Hook* hook;
  bool wanted = true;  ///< its condition holds
  int chosen = -1;     ///< index in `ways`
  std::vector<CandidatePlan> candidates;
};

struct Plan {
  std::vector<HookPlan> hooks;
  std::vector<std::string> limits;  ///< what is lost or less true here, in words
  Targets targets;                  ///< of hooks whose words come from the command line
  TargetMeans means;

  /// Is the program part of a chosen candidate?
  bool has(std::string_view program) const;
  /// Where a chosen program on a user function goes; null: it is none.
  const ProbePoints* places(std::string_view program) const;
  /// The function that a chosen program with this section goes to; fentry and fexit.
  FunctionName function(std::string_view program, std::string_view section) const;
  /// How often the perf event of a chosen program runs it, as its hook has it.
  Sampling sampling(std::string_view program) const;
};

/// Ways that turned out not to attach although they looked well: "program" -> reason.
using Refused = std::map<std::string, std::string, std::less<>>;

/// Fails (exit status 3) if a hook that the tool needs has no way on this kernel.
Result<Plan> make_plan(const Tool& tool, const Config& config, Kernel& kernel, bpf_object* object,
                       const Refused& refused);

/// Turns on what the plan has chosen, and nothing else; the library's own programs by `own`.
void select_programs(const Plan& plan, bpf_object* object, const std::set<std::string_view>& own);

/// Programs that bpf/lib brings along; the library turns them on by itself, without a tool's hook.
inline constexpr std::string_view kFollowProgram = "filter_follow";
inline constexpr std::string_view kTaskFreeProgram = "task_slot_free";
inline constexpr std::string_view kLongFreeProgram = "long_record_free";
/// They keep the tables of processes that fork, execute another program or end; the last one says
/// who a file is.
inline constexpr std::array<std::string_view, 4> kUnwindPrograms = {
    "unwind_fork", "unwind_exec", "unwind_exit", "unwind_ask_key"};
struct LibraryProgram {
  std::string_view name, purpose, when;
};
const std::vector<LibraryProgram>& library_programs();

/// The plan in words, for --explain and -v.
std::string explain(const Plan& plan, bool losers);
/// The same as JSON lines, for --explain with --json.
std::vector<std::string> explain_json(const Plan& plan, std::string_view tool);

}  // namespace coretap
