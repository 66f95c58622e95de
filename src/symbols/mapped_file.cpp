#include "symbols/mapped_file.hpp"

#include <inttypes.h>
#include <stdio.h>

namespace coretap::symbols {

Fd open_mapped(const std::string& proc_root, pid_t tgid, std::uint64_t start, std::uint64_t end,
               const MappedFile& file, const std::optional<FileIdentity>& known) {
  const auto same_inode = [](const auto& a, const auto& b) {
    return a.device == b.device && a.inode == b.inode;
  };
  const std::string process = proc_root + "/" + std::to_string(tgid);
  char range[64];
  ::snprintf(range, sizeof range, "/map_files/%" PRIx64 "-%" PRIx64, start, end);
  Fd handle = open_handle(process + range, true);
  // Even if written to since, it is still the mapped file.
  if (const auto id = identity_of(handle.get()); id && (!known || same_inode(*id, *known)))
    return handle;
  if (file.path_cut) return {};
  const auto same_file = [&] {
    const auto id = identity_of(handle.get());
    return id && (known ? *id == *known : same_inode(*id, file));
  };
  handle = open_handle_in(open_handle(process + "/root", true).get(), file.path, false);
  if (same_file()) return handle;
  // Exited: the path through its root is gone, but the host may have the same file.
  handle = open_handle(file.path, false);
  if (same_file()) return handle;
  return {};
}

}  // namespace coretap::symbols
