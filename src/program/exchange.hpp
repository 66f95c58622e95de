// Atomic exchange: the instruction that writes memory and returns the old value
// (bpf/lib/core/exchange.bpf.h). Not every kernel has it.
#pragma once
#include <linux/bpf.h>

#include <span>

namespace coretap {

struct Session;

/// Sets in the kernel program whether it may use the instruction. False: the program uses it, and
/// this kernel does not have it.
bool exchange_fits(Session& session);

/// Replaces exchanges in a program that is about to be loaded: unreachable code must be valid, too.
void take_out_exchanges(std::span<bpf_insn> code);

}  // namespace coretap
