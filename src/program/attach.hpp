// Attaches what the plan has chosen.
#pragma once
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "program/links.hpp"
#include "program/plan.hpp"

struct bpf_object;
struct bpf_program;

namespace coretap {

class Config;
class Kernel;

/// Attaches one program as its section says: to one thing, to all of a list of tracepoints
/// ("tracepoint/syscalls/sys_exit_open,sys_exit_openat") that this kernel has, to a perf event of
/// each CPU, or where the plan has found a user function.
Result<Links> attach_program(bpf_program* program, const Config& config, const Plan& plan);

/// Do samples of a perf event run it (section "perf_event/NAME")?
bool samples(const bpf_program* program);
/// How often: as the command line or else its hook has it.
Sampling sampling_of(const bpf_program* program, const Config& config, const Plan& plan);
/// To the event of this name on these CPUs, whatever the program's section says.
Result<Links> attach_perf_event(bpf_program* program, std::string_view name,
                                const Sampling& sampling, const std::vector<int>& cpus);
/// All such programs on CPUs that come online later, or again: one that goes takes its events with
/// it.
Result<Links> attach_perf_events(bpf_object* object, const Config& config, const Plan& plan,
                                 const std::vector<int>& cpus);

}  // namespace coretap
