// File systems: shared by tools with bpf/lib/fs/fs_call.bpf.h.
#pragma once
#include <string>
#include <string_view>

#include "coretap/hooks.hpp"
#include "coretap/options.hpp"
#include "coretap/result.hpp"
#include "coretap/ring_io.hpp"
#include "lib/fs/fs_call.h"

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
    "mounted are left out.\n\n"
    "With --type ext4, xfs, btrfs or f2fs, where the kernel lets programs attach to functions "
    "(fentry), operations are calls of functions of that file system, which costs nothing where "
    "other files are used. The time is that in the file system. What the kernel does with files "
    "counts too (an NFS server, overlay, loop devices), and stat by path. Of a call with two "
    "files both count. Not seen are opens of directories (most file systems), and calls that fail "
    "before they reach the file system. --explain prints which of the two is used.\n\n"
    "Reads, writes and fsyncs through io_uring count too, for the task that submitted them (with "
    "IORING_SETUP_SQPOLL that is the ring's own thread), from there until their completion is "
    "posted; one that is linked to others waits for these first.";

/// For a caveat of the hooks.
inline constexpr std::string_view kFsNotSeen =
    "not seen: I/O by mappings (mmap), page faults, AIO and the kernel itself, stat by path, opens "
    "that fail, opens and stat through io_uring, and its requests that leave no completion or "
    "several";

inline constexpr std::string_view kFsFunctionsNotSeen =
    "not seen: I/O by mappings (mmap), page faults, AIO, opens of directories, and requests of "
    "io_uring that leave no completion or several";

/// For words like "TYPE_file_open", the function of the file system given by --type.
FunctionName fs_function(const Config& config, std::string_view word);

/// The hooks of the programs.
std::vector<Hook> fs_call_hooks();

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
