// What this kernel does where a user probe lies, asked by a probe on a page of our own.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace coretap {

/// Why a probe on the instruction with these bytes would do harm or nothing; empty: neither.
/// `function_begins`: the function's first instruction.
///
/// - Since 56101b69c919 (6.18) the kernel makes a call of a probed nop of five bytes. The call's
///   return address overwrites the red zone, 128 bytes below the stack pointer that a function may
///   use without saying so (System V ABI AMD64, 3.2.2): wrong values in the traced program. At its
///   first instruction a function has nothing there yet.
/// - Instructions with some prefixes cannot be probed. The kernel says so only where the program
///   runs; in one that starts later the probe is never hit.
/// - The kernel emulates 0x90 as a nop, also with a prefix that makes `xchg %r8,%rax` of it. Go's
///   runtime.gcWriteBarrierR8 begins so, and the program crashes.
std::string place_refusal(std::span<const std::uint8_t> instruction, bool function_begins);

}  // namespace coretap
