#include "unwind/go_code.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>

#include "symbols/instructions.hpp"

namespace coretap::unwind {
namespace {

constexpr std::int64_t kWord = 8;
constexpr unsigned kRbx = 3, kRsp = 4, kRbp = 5;

/// Parts of an instruction (Intel SDM volume 2, chapter 2).
struct Parts {
  enum Map : std::uint8_t { one, two, other, vector } map = one;
  std::uint8_t op = 0;
  bool wide = false;  // 64-bit operands
  bool memory = false;
  unsigned mode = 0, reg = 0, rm = 0, low = 0;  // low: of the opcode
  std::size_t after = 0;                        // where SIB, displacement or immediate begin
};

Parts parts_of(std::span<const std::uint8_t> code) {
  constexpr std::array<std::uint8_t, 11> kPrefixes = {0x66, 0xf2, 0xf3, 0xf0, 0x2e, 0x36,
                                                      0x3e, 0x26, 0x64, 0x65, 0x67};
  std::size_t at = 0;
  const auto next = [&] { return at < code.size() ? code[at++] : std::uint8_t{0}; };
  Parts p;
  unsigned rex = 0;
  std::uint8_t byte = next();
  while (std::ranges::find(kPrefixes, byte) != kPrefixes.end() && at < code.size()) byte = next();
  if ((byte & 0xf0) == 0x40) {
    rex = byte;
    byte = next();
  }
  if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
    p.map = Parts::vector;
    return p;
  }
  if (byte == 0x0f) {
    p.map = Parts::two;
    byte = next();
    if (byte == 0x38 || byte == 0x3a) {
      p.map = Parts::other;
      byte = next();
    }
  }
  p.op = byte;
  p.wide = (rex & 8) != 0;
  p.low = (byte & 7) | (rex & 1) << 3;
  const unsigned operands = next();
  p.mode = operands >> 6;
  p.memory = p.mode != 3;
  p.reg = (operands >> 3 & 7) | (rex & 4) << 1;
  p.rm = (operands & 7) | (rex & 1) << 3;
  p.after = at;
  return p;
}

/// Which of rsp and rbp an instruction may change, apart from push, call and return: if in doubt,
/// both.
struct Changes {
  bool sp = false, bp = false;
};

Changes changes_of(const Parts& p) {
  const auto in = [](unsigned reg) { return Changes{reg == kRsp, reg == kRbp}; };
  const auto to_reg = in(p.reg), to_rm = p.memory ? Changes{} : in(p.rm), to_low = in(p.low);
  const auto both = Changes{to_reg.sp || to_rm.sp, to_reg.bp || to_rm.bp};
  const unsigned group = p.reg & 7, op = p.op;
  // No code has rsp as a result of these. Some of their registers are not general ones.
  if (p.map == Parts::vector) return {false, true};
  if (p.map == Parts::other) return {false, both.bp};
  if (p.map == Parts::two) {
    constexpr std::array<std::uint8_t, 14> kNone = {0x05, 0x0b, 0x0d, 0x18, 0x19, 0x1a, 0x1b,
                                                    0x1c, 0x1d, 0x1e, 0x1f, 0x31, 0xa2, 0xae};
    if (op >> 4 == 8 || std::ranges::find(kNone, op) != kNone.end()) return {};
    return {false, both.bp || (op >= 0xc8 && op <= 0xcf && to_low.bp)};
  }
  if (op < 0x40) return op >= 0x38 || (op & 4) != 0 ? Changes{} : (op & 2) != 0 ? to_reg : to_rm;
  switch (op >> 4) {
    case 0x5:
      return (op & 8) != 0 ? to_low : Changes{};
    case 0x6:
      return op == 0x63 || op == 0x69 || op == 0x6b ? to_reg : Changes{};
    case 0x7:
      return {};
    case 0x8:
      if (op <= 0x83) return group == 7 ? Changes{} : to_rm;
      if (op <= 0x85) return {};
      return op <= 0x87 ? both : op == 0x8a || op == 0x8b || op == 0x8d ? to_reg : to_rm;
    case 0x9:
      return op <= 0x97 ? to_low : Changes{};
    case 0xa:
      return {};
    case 0xb:
      return op >= 0xb8 ? to_low : Changes{};
    case 0xc:
      if (op == 0xc9) return {true, true};
      return op <= 0xc1 || op == 0xc6 || op == 0xc7 ? to_rm : Changes{};
    case 0xd:
      return op <= 0xd3 ? to_rm : Changes{true, true};
    case 0xe:
      return {};
    default:
      if (op == 0xf6 || op == 0xf7) return group == 2 || group == 3 ? to_rm : Changes{};
      return op >= 0xfe && group < 2 ? to_rm : Changes{};
  }
}

/// The displacement of an operand in memory at rsp; nullopt: another operand.
std::optional<std::int64_t> on_stack(std::span<const std::uint8_t> code, const Parts& p) {
  constexpr std::uint8_t kNoIndex = 0x24;
  if (p.map != Parts::one || !p.wide || p.rm != kRsp || p.mode > 2 || p.after >= code.size() ||
      code[p.after] != kNoIndex)
    return {};
  const std::size_t size = p.mode == 0 ? 0 : p.mode == 1 ? 1 : 4;
  if (code.size() - p.after - 1 < size) return {};
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint32_t{code[p.after + 1 + i]} << (8 * i);
  return size == 1 ? std::int64_t{static_cast<std::int8_t>(value)}
                   : std::int64_t{static_cast<std::int32_t>(value)};
}

bool fits(std::int64_t value) {
  return value >= 0 && value <= std::numeric_limits<std::int32_t>::max();
}

/// A register's place relative to the CFA, in words; 0: not there.
std::int16_t slot_of(std::int64_t from_cfa) {
  return from_cfa % kWord == 0 && from_cfa < 0 && from_cfa / kWord > -32000
             ? static_cast<std::int16_t>(from_cfa / kWord)
             : std::int16_t{0};
}

unwind_rule sp_rule(std::int64_t delta) {
  if (delta < 0 || !fits(delta + kWord)) return {.cfa = UNWIND_OTHER};
  return {.cfa = UNWIND_SP, .offset = static_cast<std::int32_t>(delta + kWord)};
}

class Follower {
 public:
  Follower(bool switches, const unwind_rule& after) : switches_(switches), after_(after) {}

  /// The rule before this instruction.
  unwind_rule rule(std::span<const std::uint8_t> code, std::int64_t delta) const {
    constexpr std::uint8_t kReturn = 0xc3;
    if (lost_ && delta == 0 && code[0] == kReturn) return sp_rule(0);  // on whichever stack
    if (!lost_) {
      auto rule = sp_rule(delta);
      if (rule.cfa == UNWIND_SP) place_registers(rule);
      return rule;
    }
    if (!in_.framed || !fits(in_.cfa_from_bp)) return after_;
    // `more`: the CFA may be below the stack pointer, which is on another stack.
    unwind_rule rule{
        .cfa = UNWIND_BP, .offset = static_cast<std::int32_t>(in_.cfa_from_bp), .more = 1};
    place_registers(rule);
    return rule;
  }

  /// `next`: the delta behind the instruction.
  void pass(std::span<const std::uint8_t> code, std::int64_t delta, std::int64_t next) {
    const auto p = parts_of(code);
    const auto cfa = delta + kWord;  // from rsp
    const auto place = on_stack(code, p);
    if (p.map == Parts::one && p.op == 0x50 + (p.low & 7) && (p.low == kRbp || p.low == kRbx)) {
      keep(p.low, -cfa - kWord);
    } else if (place && p.op == 0x89 && (p.reg == kRbp || p.reg == kRbx)) {
      keep(p.reg, *place - cfa);
    } else if (place && p.op == 0x8d && p.reg == kRbp) {
      frame(cfa - *place);
    } else if (p.map == Parts::one && p.wide && !p.memory &&
               ((p.op == 0x89 && p.reg == kRsp && p.rm == kRbp) ||
                (p.op == 0x8b && p.reg == kRbp && p.rm == kRsp))) {
      frame(cfa);
    } else if (p.map == Parts::one && (p.op & 0xf8) == 0x58 && p.low == kRbp) {
      restore(-cfa);
    } else if (p.map == Parts::one && (p.op & 0xf8) == 0x58 && p.low == kRbx) {
      in_.bx = 0;
    } else if (place && p.op == 0x8b && p.reg == kRbp) {
      restore(*place - cfa);
    } else if (p.map == Parts::one && (p.op == 0xc3 || p.op == 0xeb || p.op == 0xe9)) {
      if (ended_) in_ = body_;  // what follows is in the frame again
      ended_ = false;
    } else {
      const auto changes = changes_of(p);
      const bool adds = p.map == Parts::one && p.wide && !p.memory && p.rm == kRsp &&
                        (p.op == 0x81 || p.op == 0x83) && ((p.reg & 7) == 0 || (p.reg & 7) == 5);
      const bool counted = adds && next != delta;
      if (changes.sp && !counted && switches_) lost_ = true;
      if (changes.bp) in_.framed = false;
    }
  }
  void lose() {
    lost_ = switches_;
    in_.framed = false;
  }

 private:
  struct Registers {
    std::int16_t bp = 0,
                 bx = 0;  // where the caller's values are, in words from the CFA; 0: in them
    bool framed = false;  // rbp is the frame's, not the caller's or another value
    std::int64_t cfa_from_bp = 0;
  };

  void place_registers(unwind_rule& rule) const {
    if (in_.bp != 0) {
      rule.bp = UNWIND_BP_AT_CFA;
      rule.bp_slot = in_.bp;
    }
    rule.bx_slot = in_.bx;
  }
  void keep(unsigned reg, std::int64_t from_cfa) {
    if (lost_) return;  // on another stack
    auto& slot = reg == kRbp ? in_.bp : in_.bx;
    if (slot == 0) slot = slot_of(from_cfa);
  }
  void frame(std::int64_t cfa_from_bp) {
    in_.framed = !lost_ && in_.bp != 0;
    in_.cfa_from_bp = cfa_from_bp;
  }
  void restore(std::int64_t from_cfa) {
    // On another stack the place cannot be compared.
    if (!lost_ && (in_.bp == 0 || slot_of(from_cfa) != in_.bp)) {
      in_.framed = false;
      return;
    }
    if (!ended_) body_ = in_;
    ended_ = true;
    in_.framed = false;
    in_.bp = in_.bx = 0;
  }

  const bool switches_;
  const unwind_rule after_;
  Registers in_, body_;
  bool lost_ = false;   // the stack pointer is not known
  bool ended_ = false;  // rbp was restored: the function is about to return
};

}  // namespace

unwind_rule go_rule(std::int64_t delta) {
  auto rule = sp_rule(delta);
  // Compiled functions with a frame save rbp below the return address. Those of Go 1.16 to 1.20 do
  // so one instruction after they have made the frame.
  if (rule.cfa == UNWIND_SP && delta > 0) {
    rule.bp = UNWIND_BP_AT_CFA;
    rule.bp_slot = -2;
  }
  return rule;
}

unwind_rule go_rule_of_arm64(std::int64_t delta) {
  if (delta == 0) return {.cfa = UNWIND_SP};
  const auto slot = slot_of(-delta);
  if (slot == 0 || !fits(delta)) return {.cfa = UNWIND_OTHER};
  return {.cfa = UNWIND_SP,
          .bp = UNWIND_BP_AT_CFA,
          .bp_slot = static_cast<std::int16_t>(slot - 1),
          .ra_slot = slot,
          .offset = static_cast<std::int32_t>(delta)};
}

void read_go_code(std::span<const std::uint8_t> code, std::span<const GoStep> steps, bool switches,
                  const unwind_rule& after, std::vector<GoRow>& rows) {
  Follower follower(switches, after);
  const auto begin = steps.empty() ? 0 : steps.front().address;
  std::size_t at = 0;
  for (std::size_t step = 0; at < code.size() && !steps.empty();) {
    const auto delta_at = [&](std::uint64_t address) {
      while (step + 1 < steps.size() && steps[step + 1].address <= address) ++step;
      return steps[step].delta;
    };
    const auto rest = code.subspan(at);
    const auto delta = delta_at(begin + at);
    rows.push_back({begin + at, follower.rule(rest, delta)});
    const auto bytes = symbols::instruction_bytes(rest);
    if (bytes == 0) {
      // Data, or an unknown instruction: the next step begins at one.
      follower.lose();
      rows.back().rule = follower.rule(rest, delta);
      at = step + 1 < steps.size() ? steps[step + 1].address - begin : code.size();
      continue;
    }
    follower.pass(rest.first(std::min(bytes, rest.size())), delta, delta_at(begin + at + bytes));
    at += bytes;
  }
}

}  // namespace coretap::unwind
