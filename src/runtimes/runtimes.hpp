// The interpreters and runtimes whose frames are known. Each has two files here and a header in
// bpf/lib/stack.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/stack/runtime.h"

namespace coretap::runtimes {

/// The kernel program's facts about an interpreter in an ELF file; nothing: it has none.
/// `base`: the unwind table's, from which the kernel program counts addresses.
std::optional<runtime_file> runtime_in(int fd, std::uint64_t base);

/// The runtime of a frame with STACK_RUNTIME.
runtime_kind kind_of(std::uint64_t word);
/// In brackets, as frames are marked with it: "[python]".
std::string_view name_of(runtime_kind kind);
/// True if a native frame stands for each run of the interpreter's loop, in addition to its frames.
bool has_loop(runtime_kind kind);

}  // namespace coretap::runtimes
