// Attaches what the plan has chosen.
#pragma once
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
/// ("tracepoint/syscalls/sys_exit_open,sys_exit_openat") that this kernel has, to a clock on each
/// CPU, or where the plan has found a user function.
Result<Links> attach_program(bpf_program* program, const Config& config, const Plan& plan);

/// Does a clock of each CPU run it (section "perf_event/...")?
bool is_clock(const bpf_program* program);
/// For CPUs that come online later, or again: one that goes takes its clock with it.
Result<Links> attach_clocks(bpf_object* object, const Config& config, const std::vector<int>& cpus);

}  // namespace coretap
