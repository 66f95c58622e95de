// Instructions that not every kernel has: facts for the program's constants, and changes of its
// code just before it is loaded.
#pragma once
#include <linux/bpf.h>

#include <cstdint>
#include <span>

#include "kernel/kernel.hpp"
#include "program/section.hpp"

namespace coretap {

struct Session;

/// Kernel structures at addresses that have no type for the verifier
/// (bpf/lib/core/follow.bpf.h): if this kernel can cast an address to a typed pointer, stores the
/// ids of the types that the program follows in its constants. Returns the id of the kernel
/// function that casts; 0: none.
std::uint32_t tell_types(Session& session);
/// Turns CAST_CALL into calls of that function.
void complete_casts(std::span<bpf_insn> code, std::uint32_t function);

/// How the session's programs turn preemption off (UNPREEMPTED in bpf/lib/core/coretap.bpf.h).
Kernel::Preemption preemption_of(Session& session);
/// Turns PREEMPT_DISABLE_CALL and PREEMPT_ENABLE_CALL into calls of the kernel's functions, or
/// into nothing.
void complete_preemption(std::span<bpf_insn> code, const Section& at,
                         const Kernel::Preemption& preemption);

/// Atomic exchange: writes memory and returns the old value (bpf/lib/core/exchange.bpf.h). Sets in
/// the kernel program whether it may use it. False: the program uses it, and this kernel does not
/// have it.
bool exchange_fits(Session& session);
/// Replaces exchanges: unreachable code must be valid, too.
void take_out_exchanges(std::span<bpf_insn> code);

}  // namespace coretap
