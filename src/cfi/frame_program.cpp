#include "cfi/frame_program.hpp"

#include <dwarf.h>
#include <elf.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

namespace coretap::unwind {
namespace {

// System V ABI, AMD64 supplement, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1.
constexpr FrameRegisters kX86{
    .sp = 7, .bp = 6, .return_address = 16, .bx = 3, .rdi = 5, .r10 = 10, .pushed = -8};
constexpr FrameRegisters kArm64{.sp = 31,
                                .bp = 29,
                                .return_address = 30,
                                .bx = FrameRegisters::kNone,
                                .rdi = FrameRegisters::kNone,
                                .r10 = FrameRegisters::kNone,
                                .pushed = 0};
// Says whether return addresses are signed (AAELF64); without an operand. The kernel program
// removes signatures in any case.
constexpr std::uint8_t kNegateReturnAddressState = 0x2d;

constexpr std::uint8_t kOpcodeInHighBits = 0xc0;  // the low six bits are an operand
constexpr std::size_t kMaxRemembered = 32;

// CFA of the PLT's FDE as all linkers write it: rsp + 8, plus 8 from a certain byte of each 16-byte
// entry. That byte depends on the instructions of the entries.
constexpr std::uint8_t kPltExpression[] = {
    0x77, 8,           // breg7 8
    0x80, 0,           // breg16 0
    0x3f, 0x1a,        // lit15, and
    0x30, 0x2a,        // lit?, ge
    0x33, 0x24, 0x22,  // lit3, shl, plus
};
constexpr std::size_t kPltLiteral = 6;

// register + offset; with `deref` the value there + more.
struct Place {
  std::uint8_t reg;
  bool deref = false;
  std::int64_t offset, more = 0;
};

std::optional<Place> place_of(Bytes expression) {
  const auto base = expression.u8();
  if (base < DW_OP_breg0 || base > DW_OP_breg31) return {};
  Place place{.reg = static_cast<std::uint8_t>(base - DW_OP_breg0), .offset = expression.sleb()};
  if (!expression.at_end()) {
    if (expression.u8() != DW_OP_deref) return {};
    place.deref = true;
    if (!expression.at_end()) {
      if (expression.u8() != DW_OP_plus_uconst) return {};
      place.more = static_cast<std::int64_t>(expression.uleb());
    }
  }
  if (!expression.ok() || !expression.at_end()) return {};
  return place;
}

std::uint8_t plt_byte(Bytes expression) {
  if (expression.left() != std::size(kPltExpression)) return 0;
  const std::uint8_t* bytes = expression.position();
  for (std::size_t i = 0; i < std::size(kPltExpression); ++i)
    if (i != kPltLiteral && bytes[i] != kPltExpression[i]) return 0;
  const unsigned literal = bytes[kPltLiteral] - kPltExpression[kPltLiteral];
  return literal < 16 ? static_cast<std::uint8_t>(literal) : 0;
}

std::uint8_t cfa_by_register(std::uint64_t reg, const FrameRegisters& registers) {
  if (reg == registers.sp) return UNWIND_SP;
  if (reg == registers.bp) return UNWIND_BP;
  if (reg == registers.bx) return UNWIND_BX;
  if (reg == registers.r10) return UNWIND_R10;
  return UNWIND_OTHER;
}

void cfa_by_expression(Bytes expression, const FrameRegisters& registers, Frame& frame) {
  frame.cfa = UNWIND_OTHER;
  frame.cfa_expression = true;
  frame.cfa_offset = frame.cfa_more = 0;
  const bool pushed = registers.pushed != 0;
  if (const auto byte = plt_byte(expression); pushed && byte > 0) {
    frame.cfa = UNWIND_PLT;
    frame.cfa_more = byte;
  } else if (const auto place = place_of(expression)) {
    if (!place->deref)
      frame.cfa = cfa_by_register(place->reg, registers);
    else if (pushed && place->reg == registers.sp)
      frame.cfa = UNWIND_SP_DEREF;
    else if (pushed && place->reg == registers.bp)
      frame.cfa = UNWIND_BP_DEREF;
    frame.cfa_offset = place->offset;
    frame.cfa_more = place->more;
  }
}

Saved saved_by_expression(Bytes expression, const FrameRegisters& registers) {
  const auto place = place_of(expression);
  if (place && !place->deref && place->reg == registers.bp)
    return {.kind = Saved::at_bp, .offset = place->offset};
  if (place && !place->deref && place->reg == registers.sp)
    return {.kind = Saved::at_sp, .offset = place->offset};
  return {.kind = Saved::elsewhere};
}

std::int64_t factored(std::uint64_t count, std::int64_t align) {
  return static_cast<std::int64_t>(count * static_cast<std::uint64_t>(align));
}

// nullptr for registers that unwinding does not need.
Saved Frame::*saved(std::uint64_t reg, const FrameRegisters& registers) {
  if (reg == registers.bx) return &Frame::bx;
  if (reg == registers.bp) return &Frame::bp;
  if (reg == registers.return_address) return &Frame::ra;
  return nullptr;
}

class Machine {
 public:
  Machine(Bytes program, const FrameContext& context, std::uint64_t& location, Frame& frame,
          const OnFrame& row)
      : program_(program),
        context_(context),
        registers_(*context.registers),
        location_(location),
        frame_(frame),
        row_(row) {}

  bool run() {
    while (!program_.at_end())
      if (!step()) return false;
    return program_.ok();
  }

 private:
  bool step() {
    const std::uint8_t byte = program_.u8();
    const std::uint8_t low = byte & ~kOpcodeInHighBits;
    switch (byte & kOpcodeInHighBits) {
      case DW_CFA_advance_loc:
        return advance(low);
      case DW_CFA_offset:
        return offset(low, program_.uleb());
      case DW_CFA_restore:
        return restore(low);
      default:
        return extended(byte);
    }
  }

  // A truncated operand fails before it has an effect.
  bool extended(std::uint8_t opcode) {
    switch (opcode) {
      case DW_CFA_nop:
        return true;
      case DW_CFA_advance_loc1:
        return advance(program_.u8());
      case DW_CFA_advance_loc2:
        return advance(program_.number<std::uint16_t>());
      case DW_CFA_advance_loc4:
        return advance(program_.number<std::uint32_t>());
      case DW_CFA_MIPS_advance_loc8:
        return advance(program_.number<std::uint64_t>());
      case DW_CFA_set_loc:
        return set_location();
      case DW_CFA_remember_state:
        return remember();
      case DW_CFA_restore_state:
        return recall();
      case DW_CFA_def_cfa_offset:
        return define_cfa_offset(static_cast<std::int64_t>(program_.uleb()));
      case DW_CFA_def_cfa_offset_sf:
        return define_cfa_offset(factored_sleb());
      case DW_CFA_def_cfa_expression:
        cfa_by_expression(program_.take(program_.uleb()), registers_, frame_);
        return program_.ok();
      case DW_CFA_GNU_args_size:
        program_.uleb();
        return program_.ok();
      case kNegateReturnAddressState:
        return registers_.pushed == 0;
      default:
        return of_register(opcode, program_.uleb());
    }
  }

  // Instructions whose first operand is a register.
  bool of_register(std::uint8_t opcode, std::uint64_t reg) {
    switch (opcode) {
      case DW_CFA_offset_extended:
        return offset(reg, program_.uleb());
      case DW_CFA_offset_extended_sf:
        return offset(reg, static_cast<std::uint64_t>(program_.sleb()));
      case DW_CFA_GNU_negative_offset_extended:
        return offset(reg, 0 - program_.uleb());
      case DW_CFA_restore_extended:
        return restore(reg);
      case DW_CFA_undefined:
        return save(reg, {.kind = Saved::undefined});
      case DW_CFA_same_value:
        return save(reg, {.kind = Saved::same});
      case DW_CFA_register:
        return save(reg,
                    {.kind = program_.uleb() == registers_.rdi ? Saved::in_rdi : Saved::elsewhere});
      case DW_CFA_val_offset:
      case DW_CFA_val_offset_sf:
        program_.uleb();
        return save(reg, {.kind = Saved::elsewhere});
      case DW_CFA_expression:
        return save(reg, saved_by_expression(program_.take(program_.uleb()), registers_));
      case DW_CFA_val_expression:
        program_.take(program_.uleb());
        return save(reg, {.kind = Saved::elsewhere});
      case DW_CFA_def_cfa:
        return define_cfa(cfa_by_register(reg, registers_),
                          static_cast<std::int64_t>(program_.uleb()));
      case DW_CFA_def_cfa_sf:
        return define_cfa(cfa_by_register(reg, registers_), factored_sleb());
      // Valid after an expression, too: assembler code does it, and other unwinders accept it.
      case DW_CFA_def_cfa_register:
        return define_cfa(cfa_by_register(reg, registers_), frame_.register_offset);
      default:
        return false;
    }
  }
  std::int64_t factored_sleb() {
    return factored(static_cast<std::uint64_t>(program_.sleb()), context_.data_align);
  }

  bool advance(std::uint64_t delta) {
    if (!program_.ok()) return false;
    row_(location_, frame_);
    return !__builtin_mul_overflow(delta, context_.code_align, &delta) &&
           !__builtin_add_overflow(location_, delta, &location_);
  }
  bool set_location() {
    const auto to = program_.encoded(context_.encoding);
    if (!to || *to < location_) return false;
    row_(location_, frame_);
    location_ = *to;
    return true;
  }

  bool save(std::uint64_t reg, const Saved& where) {
    if (!program_.ok()) return false;
    if (const auto member = saved(reg, registers_)) frame_.*member = where;
    return true;
  }
  bool offset(std::uint64_t reg, std::uint64_t count) {
    return save(reg, {.kind = Saved::at_cfa, .offset = factored(count, context_.data_align)});
  }
  bool restore(std::uint64_t reg) {
    const auto member = saved(reg, registers_);
    return member != nullptr ? save(reg, context_.initial.*member) : program_.ok();
  }

  bool remember() {
    if (remembered_.size() >= kMaxRemembered) return false;
    remembered_.push_back(frame_);
    return true;
  }
  bool recall() {
    if (remembered_.empty()) return false;
    frame_ = remembered_.back();
    remembered_.pop_back();
    return true;
  }

  bool define_cfa_offset(std::int64_t offset) {
    return !frame_.cfa_expression && define_cfa(frame_.cfa, offset);
  }
  bool define_cfa(std::uint8_t cfa, std::int64_t offset) {
    if (!program_.ok()) return false;
    frame_.cfa = cfa;
    frame_.cfa_expression = false;
    frame_.cfa_offset = frame_.register_offset = offset;
    frame_.cfa_more = 0;
    return true;
  }

  Bytes program_;
  const FrameContext& context_;
  const FrameRegisters& registers_;
  std::uint64_t& location_;
  Frame& frame_;
  const OnFrame& row_;
  std::vector<Frame> remembered_;
};

// Converts a location to an offset from the CFA, if possible.
Saved from_cfa(const Saved& where, const Frame& frame) {
  const bool comparable = (where.kind == Saved::at_sp && frame.cfa == UNWIND_SP) ||
                          (where.kind == Saved::at_bp && frame.cfa == UNWIND_BP);
  std::int64_t offset = 0;
  if (!comparable || __builtin_sub_overflow(where.offset, frame.cfa_offset, &offset)) return where;
  return {.kind = Saved::at_cfa, .offset = offset};
}

template <typename T>
bool fits(std::int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

std::optional<std::int16_t> slot(std::int64_t offset) {
  constexpr std::int64_t kSlot = 8;
  if (offset % kSlot != 0 || !fits<std::int16_t>(offset / kSlot)) return {};
  return static_cast<std::int16_t>(offset / kSlot);
}

// glibc's __restore_rt, with the ucontext of the handler that returns to it.
bool is_sigreturn(const Frame& frame) {
  const auto at = [](const Saved& where, std::int64_t offset) {
    return where.kind == Saved::at_sp && where.offset == offset;
  };
  return frame.cfa == UNWIND_SP_DEREF && frame.cfa_offset == 160 && frame.cfa_more == 0 &&
         at(frame.ra, 168) && at(frame.bp, 120) && at(frame.bx, 128);
}

std::int16_t bx_slot(const Frame& frame) {
  if (frame.bx.kind == Saved::same) return 0;
  const auto where = from_cfa(frame.bx, frame);
  const auto found = where.kind == Saved::at_cfa ? slot(where.offset) : std::nullopt;
  return found && *found != 0 ? *found : std::int16_t{UNWIND_BX_LOST};
}

// glibc's _dl_runtime_resolve() of arm64 is described as if the linkage table, which jumps to it,
// had not pushed two words, one of which is x30. No other function has its return address above its
// frame.
Frame with_pushed_return(Frame frame, const FrameRegisters& registers) {
  constexpr std::int64_t kPushed = 16;
  const auto ra = from_cfa(frame.ra, frame);
  if (registers.pushed != 0 || ra.kind != Saved::at_cfa || ra.offset < 0 || ra.offset >= kPushed ||
      !fits<std::int32_t>(frame.cfa_offset))
    return frame;
  frame.ra = {.kind = Saved::at_cfa, .offset = ra.offset - kPushed};
  frame.bp = from_cfa(frame.bp, frame);
  if (frame.bp.kind == Saved::at_cfa) frame.bp.offset -= kPushed;
  frame.cfa_offset += kPushed;
  return frame;
}

/// As in unwind_rule; nullopt: elsewhere.
std::optional<std::int16_t> ra_slot(const Frame& frame, const FrameRegisters& registers) {
  const auto ra = from_cfa(frame.ra, frame);
  if (registers.pushed == 0 && ra.kind == Saved::same) return std::int16_t{0};
  if (ra.kind != Saved::at_cfa) return {};
  if (registers.pushed != 0)
    return ra.offset == registers.pushed ? std::optional<std::int16_t>(0) : std::nullopt;
  const auto found = slot(ra.offset);
  return found && *found != 0 ? found : std::nullopt;
}

}  // namespace

bool run_frame_program(Bytes program, const FrameContext& context, std::uint64_t& location,
                       Frame& frame, const OnFrame& row) {
  return Machine(program, context, location, frame, row).run();
}

const FrameRegisters& frame_registers(std::uint16_t machine) {
  return machine == EM_AARCH64 ? kArm64 : kX86;
}

unwind_rule rule_of(const Frame& described, const FrameContext& context) {
  const unwind_rule other{.cfa = UNWIND_OTHER};
  const auto frame = with_pushed_return(described, *context.registers);
  if (frame.ra.kind == Saved::undefined) return {.cfa = UNWIND_END};
  // A signal frame's caller has an exact address (not a return address): its rule must indicate
  // this.
  if (context.signal) return is_sigreturn(frame) ? unwind_rule{.cfa = UNWIND_SIGNAL} : other;
  // Only vfork() keeps the return address in rdi: where rdi is a parameter, there is another rule.
  if (frame.ra.kind == Saved::in_rdi && frame.cfa == UNWIND_SP && frame.bp.kind == Saved::same &&
      frame.bx.kind == Saved::same && fits<std::int32_t>(frame.cfa_offset))
    return {.cfa = UNWIND_VFORK, .offset = static_cast<std::int32_t>(frame.cfa_offset)};
  const auto return_slot = ra_slot(frame, *context.registers);
  if (!return_slot || frame.cfa == UNWIND_OTHER || !fits<std::int32_t>(frame.cfa_offset) ||
      !fits<std::int32_t>(frame.cfa_more))
    return other;
  unwind_rule rule{.cfa = frame.cfa,
                   .bx_slot = bx_slot(frame),
                   .ra_slot = *return_slot,
                   .offset = static_cast<std::int32_t>(frame.cfa_offset),
                   .more = static_cast<std::int32_t>(frame.cfa_more)};
  if (frame.bp.kind == Saved::same) return rule;
  // No rule can express where the caller's frame pointer is: its CFA may depend on it, so do not
  // guess.
  const auto bp = from_cfa(frame.bp, frame);
  const auto bp_slot = slot(bp.offset);
  if ((bp.kind != Saved::at_cfa && bp.kind != Saved::at_bp) || !bp_slot) return other;
  rule.bp = bp.kind == Saved::at_cfa ? UNWIND_BP_AT_CFA : UNWIND_BP_AT_BP;
  rule.bp_slot = *bp_slot;
  return rule;
}

}  // namespace coretap::unwind
