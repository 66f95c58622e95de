// The very file behind a mapping of a process, whatever has become of its name.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "symbols/process_files.hpp"

namespace coretap::symbols {

struct MappedFile {
  std::string path;
  /// As in maps, which btrfs and overlayfs number in another way than stat.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool path_cut = false;
};

/// A handle on the file that is (or was) mapped at [start, end) in process `tgid`: by map_files, so
/// that deleted files and those of other mount namespaces are found; else by its path inside the
/// process' root; after its exit by its path here. `known`: its identity when it was seen before,
/// if it was. None: it cannot be reached, or another file has its name.
Fd open_mapped(const std::string& proc_root, pid_t tgid, std::uint64_t start, std::uint64_t end,
               const MappedFile& file, const std::optional<FileIdentity>& known);

}  // namespace coretap::symbols
