// The instruction that writes memory and returns what was there (bpf/lib/exchange.bpf.h), which not
// every kernel has.
#pragma once
#include <linux/bpf.h>

#include <span>

namespace coretap {

struct Session;

/// Tells the kernel program whether it may use the instruction; false: it has it, and this kernel
/// does not.
bool exchange_fits(Session& session);

/// Of a program that is about to be loaded: what it never reaches must be valid too.
void take_out_exchanges(std::span<bpf_insn> code);

}  // namespace coretap
