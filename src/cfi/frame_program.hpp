// Call frame instructions (DWARF 5 section 6.4.2) and what they make of the registers that matter.
#pragma once
#include <cstdint>
#include <functional>

#include "cfi/bytes.hpp"
#include "lib/unwind.h"

namespace coretap::unwind {

/// Where the caller's value of a register is.
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
  std::int64_t offset = 0;  ///< from what `kind` says
};

/// What holds at one instruction of a function.
struct Frame {
  std::uint8_t cfa = UNWIND_OTHER;  ///< enum unwind_cfa
  bool cfa_expression = false;      ///< so its offset cannot be changed alone
  std::int64_t cfa_offset = 0, cfa_more = 0;
  std::int64_t register_offset = 0;  ///< of the last CFA that was told without an expression
  Saved bp, bx, ra;
};

/// Of the CIE, what its instructions and those of its FDEs are read with.
struct FrameContext {
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint8_t encoding = 0;  ///< of addresses
  bool signal = false;        ///< the frame was interrupted, it has not called
  Frame initial;
};

/// Runs a program from `location` on: calls `row` with what has held at `location` each time before
/// it moves on, and leaves what holds last. False: an instruction was not understood; nothing is
/// known from `location` on.
using OnFrame = std::function<void(std::uint64_t location, const Frame& frame)>;
bool run_frame_program(Bytes program, const FrameContext& context, std::uint64_t& location,
                       Frame& frame, const OnFrame& row);

/// The rule for it, or one that says that there is none.
unwind_rule rule_of(const Frame& frame, bool signal);

}  // namespace coretap::unwind
