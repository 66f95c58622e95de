// Opens the file of a process's mapping, even if renamed or deleted.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "symbols/process_files.hpp"

namespace coretap::symbols {

struct MappedFile {
  std::string path;
  /// As in /proc/PID/maps; btrfs and overlayfs number devices differently in stat.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool path_cut = false;
};

/// A handle on the file that is (or was) mapped at [start, end) in process `tgid`: by map_files,
/// which finds deleted files and those of other mount namespaces; else by its path in the process's
/// root; after its exit by the path here. `known`: its identity if seen before. None: unreachable,
/// or the path has another file.
Fd open_mapped(const std::string& proc_root, pid_t tgid, std::uint64_t start, std::uint64_t end,
               const MappedFile& file, const std::optional<FileIdentity>& known);

}  // namespace coretap::symbols
