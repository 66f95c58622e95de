// The programs and maps of a kernel object, and the ELF sections that name attach points.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

struct bpf_map;
struct bpf_object;
struct bpf_program;

namespace coretap {

/// Null: no object, without programs and maps.
std::vector<bpf_program*> programs_of(const bpf_object* object);
std::vector<bpf_map*> maps_of(const bpf_object* object);

/// The parts of a program's section: "tp_btf", "sched_switch".
struct Section {
  std::string_view kind, target;

  std::string text() const;
};
Section split_section(std::string_view section);
Section section_of(const bpf_program* program);

/// The kind of programs that run on samples of a perf event; the target is the event's name.
inline constexpr std::string_view kPerfEvent = "perf_event";
/// True for a program on a user function: "uprobe/LIBRARY:FUNCTION", "uretprobe/...".
bool is_probe(const Section& section);
/// The target of a program at the return of the function that the program before it in the
/// candidate is at the entry of: one program, which the verifier checks once, serves all functions.
inline constexpr std::string_view kSameFunction = "same";
/// How many arguments that program reads at the entry: the number after the target, which
/// split_section() removes ("uprobe/libc:free/1"); without one all that are in registers.
unsigned arguments_read(const bpf_program* program);

/// The members of a list of tracepoints ("syscalls/sys_exit_open,sys_exit_openat"), each with its
/// category: "syscalls/sys_exit_open".
std::vector<std::string> listed_tracepoints(std::string_view target);
/// The id of one of them in tracefs.
Result<int> listed_tracepoint_id(std::string_view name);

}  // namespace coretap
