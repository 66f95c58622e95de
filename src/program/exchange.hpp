// The instruction that writes memory and returns what was there (bpf/lib/exchange.bpf.h), which not
// every kernel has.
#pragma once

struct bpf_program;

namespace coretap {

struct Session;

/// Tells the kernel program whether it may use the instruction; false: it has it, and this kernel
/// does not.
bool exchange_fits(Session& session);

/// While the program is loaded: what it never reaches must be valid too.
void take_out_exchanges(bpf_program* program);

}  // namespace coretap
