// Chooses, for each hook, the first way that this kernel has; attaches; explains.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/links.hpp"
#include "core/probe_target.hpp"
#include "coretap/result.hpp"
#include "coretap/tool.hpp"

struct bpf_object;
struct bpf_program;

namespace coretap {

class Config;
class Kernel;

/// What one way came to.
struct WayPlan {
  const Way* way;
  std::vector<std::string> targets;                     ///< sections: "tp_btf/sched_switch"
  std::string lost_because;                             ///< empty: usable
  std::map<std::string_view, ProbePoints> places = {};  ///< of programs on user functions
  std::optional<Error> nowhere = {};                    ///< no file has such a function
};

struct HookPlan {
  const Hook* hook;
  bool wanted = true;  ///< its condition holds
  int chosen = -1;     ///< index in `ways`
  std::vector<WayPlan> ways;
};

struct Plan {
  std::vector<HookPlan> hooks;
  std::vector<std::string> limits;  ///< what is lost or less true here, in words

  /// Where a chosen program on a user function goes; null: it is none.
  const ProbePoints* places(std::string_view program) const;
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
/// They keep the tables of processes that fork, execute another program or end.
inline constexpr std::array<std::string_view, 3> kUnwindPrograms = {"unwind_fork", "unwind_exec",
                                                                    "unwind_exit"};
struct LibraryProgram {
  std::string_view name, purpose, when;
};
const std::vector<LibraryProgram>& library_programs();

/// A program's section in its parts: "tp_btf", "sched_switch".
struct Section {
  std::string_view kind, target;
};
Section split_section(std::string_view section);

/// Attaches one program as its section says: to one thing, to all of a list of tracepoints
/// ("tracepoint/syscalls/sys_exit_open,sys_exit_openat") that this kernel has, to a clock on each
/// CPU, or where the plan has found a user function.
Result<Links> attach_program(bpf_program* program, const Config& config, const Plan& plan);

/// Does a clock of each CPU run it (section "perf_event/...")?
bool is_clock(const bpf_program* program);
/// For CPUs that come online later, or again: one that goes takes its clock with it.
Result<Links> attach_clocks(bpf_object* object, const Config& config, const std::vector<int>& cpus);

/// The members of such a list, each with its category: "syscalls/sys_exit_open".
std::vector<std::string> listed_tracepoints(std::string_view target);

/// The plan in words, for --explain and -v.
std::string explain(const Plan& plan, bool losers);

}  // namespace coretap
