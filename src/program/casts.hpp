// Kernel structures at addresses that the verifier knows nothing of (bpf/lib/follow.bpf.h).
#pragma once

struct bpf_program;

namespace coretap {

struct Session;

/// Gives the kernel program the ids of the types it follows, where this kernel can make an address
/// a pointer of a type.
void tell_types(Session& session);

/// While the program is loaded, after tell_types().
void complete_casts(bpf_program* program);

}  // namespace coretap
