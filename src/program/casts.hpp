// Kernel structures at addresses that have no type for the verifier (bpf/lib/core/follow.bpf.h).
#pragma once
#include <linux/bpf.h>

#include <cstdint>
#include <span>

namespace coretap {

struct Session;

/// If this kernel can cast an address to a typed pointer, stores the ids of the types that the
/// program follows in its constants. Returns the id of the kernel function that casts; 0: none.
std::uint32_t tell_types(Session& session);

/// In a program that is about to be loaded: turns CAST_CALL into calls of that function.
void complete_casts(std::span<bpf_insn> code, std::uint32_t function);

}  // namespace coretap
