// The ELF section of a kernel program, which names its attach point.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// The parts of a program's section: "tp_btf", "sched_switch".
struct Section {
  std::string_view kind, target;
};
Section split_section(std::string_view section);

/// The kind of programs that run on samples of a perf event; the target is the event's name.
inline constexpr std::string_view kPerfEvent = "perf_event";

/// The members of a list of tracepoints ("syscalls/sys_exit_open,sys_exit_openat"), each with its
/// category: "syscalls/sys_exit_open".
std::vector<std::string> listed_tracepoints(std::string_view target);
/// The id of one of them in tracefs.
Result<int> listed_tracepoint_id(std::string_view name);

}  // namespace coretap
