// Tests what this kernel does with a user probe, by placing one on a page of this process.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "symbols/instructions.hpp"

namespace coretap {

/// Why a probe on the instruction with these bytes would do harm or have no effect; empty: neither.
/// `function_begins`: it is the function's first instruction.
///
/// - Since 56101b69c919 (6.18) the kernel replaces a probed nop of five bytes by a call. The call's
///   return address overwrites the red zone, 128 bytes below the stack pointer that a function may
///   use without adjusting it (System V ABI AMD64, 3.2.2): wrong values in the traced program. At
///   its first instruction a function has no data there yet.
/// - Instructions with some prefixes cannot be probed. The kernel reports this only if the program
///   is running; in one that starts later the probe is never hit.
/// - The kernel emulates 0x90 as a nop, also with a prefix that makes it `xchg %r8,%rax`. Go's
///   runtime.gcWriteBarrierR8 begins with it, and the program crashes.
std::string place_refusal(std::span<const std::uint8_t> instruction, bool function_begins);

/// True if this kernel emulates instructions of this form at a probe: probes on a page of this
/// process take less time there than on an instruction that it executes in single-step mode.
/// In a virtual machine a single step takes 20 to 30 us, an emulated instruction 1 us; without one
/// 0.9 and 0.3 us.
bool emulates(symbols::EntryStep::Form form);
/// Why that is not known: the kernel refuses the probes; empty: it is known.
std::string probes_refused();
/// True if a probe on an instruction of this form is known to take a single step.
bool is_stepped(symbols::EntryStep::Form form);
/// Nanoseconds of a probe without a program on an instruction of this form, by the same test; 0:
/// not known.
double probe_ns(symbols::EntryStep::Form form);

}  // namespace coretap
