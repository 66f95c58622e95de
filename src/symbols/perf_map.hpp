// Symbols from JIT compilers: perf-PID.map files with lines of "START SIZE NAME" (hexadecimal
// numbers).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/process_files.hpp"

namespace coretap::symbols {

class PerfMap {
 public:
  struct Hit {
    const char* name = nullptr;
    std::uint64_t start = 0;  // of the symbol, even if a later one replaced its first bytes
  };

  /// Reads an open map to its end. Where entries overlap, the later one wins. Damaged lines are
  /// skipped, and so is a last line without newline, as it may still be incomplete.
  static PerfMap read(int fd);

  /// `name` is null if no entry contains the address.
  Hit find(std::uint64_t address) const;
  std::size_t bytes() const { return segments_.capacity() * sizeof(Segment) + names_.bytes(); }
  std::size_t segments() const { return segments_.size(); }
  std::size_t damaged() const { return damaged_; }

 private:
  struct Segment {
    std::uint64_t start;
    std::uint64_t symbol_start;
    std::uint32_t length;
    std::uint32_t name;
  };
  std::vector<Segment> segments_;  // sorted, disjoint
  NameArena names_;
  std::size_t damaged_ = 0;
};

/// Opens the map of a process in a directory, its /tmp: perf-NSPID.map. Rejects links, non-regular
/// files, files of users other than `owner` or root, and files above 256 MiB.
Fd open_perf_map(int directory, pid_t nspid, uid_t owner);

}  // namespace coretap::symbols
