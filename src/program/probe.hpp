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

/// True if this kernel can attach to all places in a file with one link. Unlike a perf event for
/// each place, that needs no CAP_SYS_ADMIN and detaches much faster; a hit costs the same.
bool probes_by_file(Kernel& kernel);

/// Places in one file, and the cookie of each.
struct FileProbes {
  std::string path;
  bool at_return = false;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> cookies = {};     ///< empty: no cookies
  std::vector<std::uint64_t> semaphores = {};  ///< of USDT probes; empty: none
};
/// Attaches to all of them with one link. `pid` -1: in all processes.
Result<Link> attach_file(int program, const FileProbes& probes, pid_t pid);

/// Attaches to all places or fails: which of several files is left out must depend on the files
/// alone. With `pids` only those processes get breakpoints; otherwise all processes do, including
/// later ones, and the program filters.
Result<Links> attach_probes(bpf_program* program, const std::vector<std::uint32_t>& pids,
                            const ProbePoints& places);

}  // namespace coretap
