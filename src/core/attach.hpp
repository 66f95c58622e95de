// Chooses, for each hook, the first way that this kernel has; attaches; explains.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "coretap/tool.hpp"

struct bpf_object;
struct bpf_link;
struct bpf_program;

namespace coretap {

class Config;
class Kernel;

/// What one way came to.
struct WayPlan {
  const Way* way;
  std::vector<std::string> targets;  ///< sections: "tp_btf/sched_switch"
  std::string lost_because;          ///< empty: usable
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
struct LibraryProgram {
  std::string_view name, purpose, when;
};
const std::vector<LibraryProgram>& library_programs();

/// A program's section in its parts: "tp_btf", "sched_switch".
struct Section {
  std::string_view kind, target;
};
Section split_section(std::string_view section);

struct LinkDeleter {
  void operator()(bpf_link* link) const;
};
using Link = std::unique_ptr<bpf_link, LinkDeleter>;

/// Attaches one program as its section says: to one thing, or to all of a list of tracepoints
/// ("tracepoint/syscalls/sys_exit_open,sys_exit_openat") that this kernel has.
Result<std::vector<Link>> attach_program(bpf_program* program);

/// The members of such a list, each with its category: "syscalls/sys_exit_open".
std::vector<std::string> listed_tracepoints(std::string_view target);

/// The plan in words, for --explain and -v.
std::string explain(const Plan& plan, bool losers);

}  // namespace coretap
