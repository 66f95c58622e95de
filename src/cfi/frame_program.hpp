// Interpreter of call frame instructions (DWARF 5 section 6.4.2) for the registers that matter.
#pragma once
#include <cstdint>
#include <functional>

#include "base/bytes.hpp"
#include "base/machine.hpp"
#include "lib/stack/unwind.h"

namespace coretap::unwind {

/// Location of the caller's value of a register.
struct Saved {
  enum Kind : std::uint8_t {
    same,
    undefined,
    elsewhere,
    at_cfa,
    at_bp,
    at_sp,
    in_rdi,
  } kind = same;
  std::int64_t offset = 0;  ///< relative to the base that `kind` specifies
};

/// Unwind state at one instruction of a function.
struct Frame {
  std::uint8_t cfa = UNWIND_OTHER;  ///< enum unwind_cfa
  bool cfa_expression = false;      ///< its offset cannot be changed alone
  std::int64_t cfa_offset = 0, cfa_more = 0;
  std::int64_t register_offset = 0;  ///< of the last CFA that was defined without an expression
  Saved bp, bx, ra;
};

/// DWARF numbers of the registers that matter, by the ABI of the processor.
struct FrameRegisters {
  static constexpr std::uint8_t kNone = 255;
  std::uint8_t sp, bp, return_address;
  std::uint8_t bx, rdi, r10;  ///< x86-64
  /// Offset of the return address from the CFA in all frames; 0: where the frame says.
  std::int64_t pushed;
};
/// `machine`: of struct ElfCode.
const FrameRegisters& frame_registers(std::uint16_t machine);

/// Data of the CIE for interpreting its instructions and those of its FDEs.
struct FrameContext {
  const FrameRegisters* registers = &frame_registers(machine::kElf);
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint8_t encoding = 0;  ///< of addresses
  bool signal = false;        ///< the frame was interrupted; it did not make a call
  Frame initial;
};

/// Runs a program from `location`: calls `row` with the state at `location` each time before it
/// advances, and leaves the last state in `frame`. False: an instruction was not understood;
/// nothing is known from `location` on.
using OnFrame = std::function<void(std::uint64_t location, const Frame& frame)>;
bool run_frame_program(Bytes program, const FrameContext& context, std::uint64_t& location,
                       Frame& frame, const OnFrame& row);

/// The rule for a frame state, or UNWIND_OTHER if no rule can express it.
unwind_rule rule_of(const Frame& frame, const FrameContext& context);

}  // namespace coretap::unwind
