// Attaches programs to user functions (sections "uprobe/..." and "uretprobe/...").
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
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

/// Places in one file, and what the program learns of each.
struct FileProbes {
  std::string path;
  bool at_return = false;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> cookies = {};     ///< empty: none is asked for
  std::vector<std::uint64_t> semaphores = {};  ///< of USDT probes; empty: there are none
};
/// All of them by one link. `pid` -1: of all processes.
Result<Link> attach_file(int program, const FileProbes& probes, pid_t pid);

/// All or none: which of several files was left out should depend on nothing but the files. With
/// `pids` no other process pays for the breakpoints; otherwise all have them, also those that
/// start later, and the program has the filters.
Result<Links> attach_probes(bpf_program* program, const std::vector<std::uint32_t>& pids,
                            const ProbePoints& places);

}  // namespace coretap
