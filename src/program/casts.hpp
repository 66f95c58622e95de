// Kernel structures at addresses that the verifier knows nothing of (bpf/lib/follow.bpf.h).
#pragma once
#include <linux/bpf.h>

#include <cstdint>
#include <span>

namespace coretap {

struct Session;

/// Gives the kernel program the ids of the types it follows, where this kernel can make an address
/// a pointer of a type. The id of the kernel's function that does; 0: it has none.
std::uint32_t tell_types(Session& session);

/// In a program that is about to be loaded: calls of that function.
void complete_casts(std::span<bpf_insn> code, std::uint32_t function);

}  // namespace coretap
