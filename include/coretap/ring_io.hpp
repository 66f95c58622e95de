// Reads and writes through io_uring: shared by tools with bpf/lib/fs/ring_io.bpf.h.
#pragma once
#include <string_view>

#include "coretap/hooks.hpp"

namespace coretap {

/// The last paragraph of descriptions of tools with bpf/lib/fs/file_io.bpf.h.
inline constexpr std::string_view kFileIoSeen =
    "Reads and writes through io_uring count when they complete, for the task that submitted them "
    "(with IORING_SETUP_SQPOLL that is the ring's own thread). Not seen: I/O by mappings (mmap) and "
    "AIO, splice through io_uring, requests of it that leave no completion "
    "(IOSQE_CQE_SKIP_SUCCESS, on some kernels a full ring) or several, and what the kernel does "
    "itself.";

/// The same as a caveat of the hooks.
inline constexpr std::string_view kFileIoNotSeen =
    "not seen: I/O by mappings (mmap) and AIO, and what the kernel does itself";

/// Completions of requests.
Hook ring_io_hook();
/// With RING_IO_TIMED: also their submission.
Hook timed_ring_io_hook();

}  // namespace coretap
