// File systems: what tools with bpf/lib/fs_call.bpf.h have in common.
#pragma once
#include <string>
#include <string_view>

#include "coretap/hooks.hpp"
#include "coretap/options.hpp"
#include "coretap/result.hpp"
#include "lib/fs_call.h"

namespace coretap {

inline constexpr std::string_view kFsOperations[] = {"read", "write", "open", "fsync", "getattr"};

/// For descriptions.
inline constexpr std::string_view kFsCalls =
    "Operations are those of system calls on regular files and directories: read (read, its p and "
    "v forms, sendfile, splice, copy_file_range), write, open, fsync (and fdatasync), getattr "
    "(fstat, and statx of a descriptor). The time is that of the whole call: in the file system, "
    "for locks, for the disk, and for a CPU. Of a call with two files it is the one that is "
    "read, if that is a regular file. A file counts for the file system that the process sees: "
    "overlay, not the one below it. Pipes, sockets and other files of file systems that cannot be "
    "mounted are left out.";

/// As a caveat of the hooks.
inline constexpr std::string_view kFsNotSeen =
    "not seen: I/O by mappings (mmap), page faults, io_uring, AIO and the kernel itself, stat by "
    "path, and opens that fail";

/// The two programs.
inline std::vector<Hook> fs_call_hooks() {
  return {{"results", {{{"on_exit"}}}},
          {"system calls", {{.programs = {"on_enter"}, .caveat = kFsNotSeen}}}};
}

std::string fs_type_name(const fs_type& type);

namespace shared {
/// Takes a name; look_up_fs_type() asks the kernel for it.
Option fs_type();
}  // namespace shared

/// For Tool::look_up.
Result<void> look_up_fs_type(Config& config, Setting wanted);

template <class Rodata>
Result<void> look_up_fs_type(Config& config) {
  return look_up_fs_type(config, setting(&Rodata::wanted_types));
}

}  // namespace coretap
