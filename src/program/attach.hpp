// Attaches the programs that the plan has chosen.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "program/links.hpp"
#include "program/session.hpp"

struct bpf_program;

namespace coretap {

/// Attaches one program according to its section: to one hook, to each listed tracepoint
/// ("tracepoint/syscalls/sys_exit_open,sys_exit_openat") that this kernel has, to a perf event on
/// each CPU, or to the user function that the plan has found.
Result<Links> attach_program(const Session& s, bpf_program* program);

/// The processes that get breakpoints: those of --pid; -1: all processes, including later ones, and
/// the program filters.
std::set<pid_t> probed_processes(const Config& config);

/// Places in one file, and the cookie of each.
struct FileProbes {
  std::string path;
  bool at_return = false;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> cookies = {};     ///< empty: no cookies
  std::vector<std::uint64_t> semaphores = {};  ///< of USDT probes; empty: none
};
/// Attaches to all of them with one link, if probes_by_file(). `pid` -1: in all processes.
Result<Link> attach_file(int program, const FileProbes& probes, pid_t pid);

/// The kernel has refused a perf event, or a program on it, with this errno.
Error event_refused(std::string what, int error, bool user_function = false);

/// True if samples of a perf event run the program (section "perf_event/NAME").
bool samples(const bpf_program* program);
/// The sampling rate from the command line, or by default from the program's hook.
Sampling sampling_of(const Session& s, const bpf_program* program);
/// The event that it samples, as perf(1) names it.
std::string event_of(const Session& s, const bpf_program* program);
/// Attaches to the named event on these CPUs; ignores the target in the program's section.
Result<Links> attach_perf_event(bpf_program* program, std::string_view name,
                                const Sampling& sampling, const std::vector<int>& cpus);
/// Attaches all such programs on CPUs that come online later, or again: a CPU that goes offline
/// loses its events.
Result<Links> attach_perf_events(const Session& s, const std::vector<int>& cpus);

}  // namespace coretap
