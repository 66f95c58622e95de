// Kernel structures at addresses that the verifier knows nothing of (bpf/lib/follow.bpf.h).
#pragma once
#include <linux/bpf.h>

#include <span>

namespace coretap {

struct Session;

/// Gives the kernel program the ids of the types it follows, where this kernel can make an address
/// a pointer of a type.
void tell_types(Session& session);

/// In a program that is about to be loaded, after tell_types().
void complete_casts(std::span<bpf_insn> code);

}  // namespace coretap
