// Attaches programs to user functions (sections "uprobe/..." and "uretprobe/...").
#pragma once
#include <cstdint>

#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "program/links.hpp"
#include "program/probe_target.hpp"

struct bpf_program;

namespace coretap {

class Kernel;

bool is_probe(std::string_view section);

/// Takes this kernel all places in a file by one link? Unlike a perf event for each place that
/// needs no CAP_SYS_ADMIN, and it goes away in a fraction of the time; a call costs the same.
bool probes_by_file(Kernel& kernel);
/// How programs for such links are loaded: BPF_TRACE_UPROBE_MULTI (89ae89f53d20 in 6.6), which
/// older headers do not have.
inline constexpr auto kUprobeMulti = static_cast<bpf_attach_type>(48);

/// All or none: which of several files was left out should depend on nothing but the files. With
/// `pids` no other process pays for the breakpoints; otherwise all have them, also those that
/// start later, and the program has the filters.
Result<Links> attach_probes(bpf_program* program, const std::vector<std::uint32_t>& pids,
                            const ProbePoints& places);

}  // namespace coretap
