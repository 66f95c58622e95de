#include "symbols/instructions.hpp"

#include <algorithm>
#include <string_view>

namespace coretap::symbols {

namespace {

constexpr std::uint32_t bit(unsigned reg) { return std::uint32_t{1} << reg; }

constexpr unsigned kArm64Stack = 31;

/// Loads to registers, and stores to the stack.
void see_arm64_memory(EntryStep& step, std::uint32_t i, std::uint32_t to) {
  const bool vector = i >> 26 & 1, on_stack = (i >> 5 & 31) == kArm64Stack;
  auto moves = [&](bool is_load, std::uint32_t registers) {
    step.harmless = is_load || on_stack;
    step.may_fault = !on_stack;
    step.changes = !is_load ? bit(kArm64Stack) : vector ? 0 : registers;
  };
  const unsigned operation = i >> 22 & 3;
  const bool loads = vector ? operation & 1 : operation != 0;
  if ((i & 0x3b000000) == 0x18000000) {  // ldr of a literal
    moves(true, i >> 30 == 3 ? 0 : to);
    step.may_fault = false;
  } else if ((i & 0x3b000000) == 0x39000000 || (i & 0x3b200c00) == 0x38000000) {
    moves(loads, i >> 30 == 3 && operation == 2 ? 0 : to);  // ldr, str, not prfm
  } else if ((i & 0x3b200c00) == 0x38200800) {              // an offset in a register
    moves(loads, to);
    step.harmless &= loads;
    step.may_fault = true;
  } else if ((i & 0x3b200c00) == 0x38000c00) {  // str with a new base
    moves(loads, to);
    step.harmless &= !loads;
  } else if ((i & 0x3b800000) == 0x29000000) {  // ldp, stp
    moves(i >> 22 & 1, to | (bit(i >> 10 & 31) & ~bit(31)));
  } else if ((i & 0x3bc00000) == 0x29800000) {  // stp with a new base
    moves(false, 0);
  }
}

}  // namespace

EntryStep entry_step_of_arm64(std::uint32_t i) {
  EntryStep step{.bytes = 4};
  const unsigned to = i & 31, kind = i >> 25 & 15;
  constexpr unsigned kNone = 31, kLink = 30;  // as a target, 31 is nothing or the stack pointer
  auto changes = [&](std::uint32_t registers) {
    step.harmless = true;
    step.changes = registers;
  };
  const std::uint32_t general = to == kNone ? 0 : bit(to);
  if ((i & 0xffc07fff) == 0xa9807bfd) step.form = EntryStep::push;
  if (kind == 8 || kind == 9) {  // with constants
    const unsigned group = i >> 23 & 7, flags = i >> 29 & 3;
    if (group < 2) step.form = EntryStep::address;
    if (group == 3) return step;  // of tags
    const bool stack = (group == 2 && !(flags & 1)) || (group == 4 && flags != 3);
    changes(stack ? bit(to) : general);
  } else if ((kind & 7) == 5) {  // with registers
    const bool extends = (i & 0x3f200000) == 0x0b200000, compares = (i & 0x3fe00000) == 0x3a400000;
    changes(extends ? bit(to) : compares ? 0 : general);
  } else if ((kind & 7) == 7 || i >> 16 == 0xd53b) {  // of vectors, some of which write a general
    changes(general);                                 // register; mrs
  } else if ((kind & 5) == 4) {
    see_arm64_memory(step, i, general);
  } else if ((i & 0xfffff01f) == 0xd503201f) {  // hints
    const unsigned hint = i >> 5 & 127;
    if (!hint) step.form = EntryStep::nop;
    if ((hint & ~6U) == 32) step.form = EntryStep::target;
    if (step.form != EntryStep::stepped) changes(0);
    if (hint >= 24 && hint < 28) changes(bit(kLink));  // paciaz to pacibsp
  } else if ((i & 0x7c000000) == 0x14000000 || (i & 0xff000010) == 0x54000000 ||
             (i & 0x7c000000) == 0x34000000 || (i & 0xff9ffc1f) == 0xd61f0000) {
    step.form = EntryStep::branch;
  }
  return step;
}

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLongestInstruction = 15;

/// The bytes after an opcode byte.
struct Shape {
  bool known = true;
  bool operand = false;   ///< a ModRM byte; SIB and displacement if it needs them
  std::size_t bytes = 0;  ///< size of an immediate
};
constexpr Shape kUnknown{false, false, 0};

struct Prefixes {
  bool short_data = false;  ///< prefix 66
  bool short_address = false;
  bool repeat = false;  ///< prefix f2 or f3
  bool wide = false;    ///< REX.W
  bool thread = false;  ///< prefix 64: relative to fs
  bool by_gs = false;   ///< prefix 65
  bool tracked = true;  ///< no prefix 3e: "notrack" for indirect jumps
  unsigned rex = 0;
  std::size_t data() const { return short_data && !wide ? 2 : 4; }
};

bool is_among(std::uint8_t operation, std::string_view all) {
  return all.find(static_cast<char>(operation)) != all.npos;
}

/// Shape for one-byte opcodes.
Shape shape(std::uint8_t operation, std::uint8_t operand, const Prefixes& p) {
  using namespace std::string_view_literals;
  const unsigned low = operation & 7, reg = operand >> 3 & 7;
  if (operation < 0x40) {
    if (low < 4) return {true, true, 0};
    return low == 4 ? Shape{true, false, 1} : low == 5 ? Shape{true, false, p.data()} : kUnknown;
  }
  if (is_among(operation, "\x60\x61\x62\x82\x9a\xc4\xc5\xce\xd4\xd5\xd6\xea"sv)) return kUnknown;
  if (operation >= 0x70 && operation < 0x80) return {true, false, 1};
  if (is_among(operation, "\x6a\xa8\xcd\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xeb"sv))
    return {true, false, 1};
  if (operation == 0x68 || operation == 0xa9) return {true, false, p.data()};
  if (operation == 0x69 || operation == 0x81 || operation == 0xc7) return {true, true, p.data()};
  if (is_among(operation, "\x6b\x80\x83\xc0\xc1\xc6"sv)) return {true, true, 1};
  if (operation == 0x8f) return reg == 0 ? Shape{true, true, 0} : kUnknown;  // AMD's XOP
  if (operation >= 0xa0 && operation < 0xa4)
    return {true, false, p.short_address ? std::size_t{4} : std::size_t{8}};
  if (operation >= 0xb0 && operation < 0xb8) return {true, false, 1};
  if (operation >= 0xb8 && operation < 0xc0)
    return {true, false, p.wide ? std::size_t{8} : p.data()};
  if (operation == 0xc2 || operation == 0xca) return {true, false, 2};
  if (operation == 0xc8) return {true, false, 3};
  // With prefix 66, processors differ.
  if (operation == 0xe8 || operation == 0xe9)
    return p.data() == 4 ? Shape{true, false, 4} : kUnknown;
  if (operation == 0xf6) return {true, true, reg < 2 ? std::size_t{1} : 0};
  if (operation == 0xf7) return {true, true, reg < 2 ? p.data() : 0};
  const bool operand_follows = operation == 0x63 || (operation >= 0x84 && operation < 0x90) ||
                               (operation >= 0xd0 && operation < 0xe0 && operation != 0xd7) ||
                               operation >= 0xfe;
  return {true, operand_follows, 0};
}

/// Shape for opcodes after 0f; also map 1 of VEX and EVEX.
Shape shape_of_0f(std::uint8_t operation, const Prefixes& p) {
  using namespace std::string_view_literals;
  if (is_among(operation, "\x04\x0a\x0c\x24\x25\x26\x27\x36\x39\x3b\x3c\x3d\x3e\x3f\xa6\xa7"sv))
    return kUnknown;
  if (operation == 0x78 && (p.short_data || p.repeat)) return kUnknown;  // SSE4a
  if (operation == 0x0f) return {true, true, 1};                         // 3DNow!
  if (operation >= 0x80 && operation < 0x90)
    return p.data() == 4 ? Shape{true, false, 4} : kUnknown;
  if (is_among(operation, "\x70\x71\x72\x73\xa4\xac\xba\xc2\xc4\xc5\xc6"sv)) return {true, true, 1};
  const bool alone =
      is_among(operation, "\x05\x06\x07\x08\x09\x0b\x0e\x77\xa0\xa1\xa2\xa8\xa9\xaa"sv) ||
      (operation >= 0x30 && operation < 0x38) || (operation >= 0xc8 && operation < 0xd0);
  return {true, !alone, 0};
}

/// Shape for opcodes in the maps of VEX and EVEX.
Shape shape_of_map(unsigned map, std::uint8_t operation) {
  if (map == 1) return shape_of_0f(operation, {});
  if (map == 2) return {true, true, 0};
  return map == 3 ? Shape{true, true, 1} : kUnknown;
}

/// Size of ModRM, SIB and displacement in bytes.
std::size_t operand_bytes(CodeBytes code, std::size_t at) {
  const unsigned mode = code[at] >> 6, base = code[at] & 7;
  if (mode == 3) return 1;
  if (base == 4) {
    if (at + 1 >= code.size()) return 2;  // more than available
    const bool no_base = mode == 0 && (code[at + 1] & 7) == 5;
    return 2 + (mode == 1 ? 1 : mode == 2 || no_base ? 4 : 0);
  }
  return 1 + (mode == 1 ? 1 : mode == 2 || (mode == 0 && base == 5) ? 4 : 0);
}

std::size_t read_prefixes(CodeBytes code, Prefixes& p) {
  using namespace std::string_view_literals;
  std::size_t at = 0;
  for (; at < code.size() && is_among(code[at], "\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3"sv);
       at++) {
    p.short_data |= code[at] == 0x66;
    p.short_address |= code[at] == 0x67;
    p.repeat |= code[at] == 0xf2 || code[at] == 0xf3;
    p.tracked &= code[at] != 0x3e;
    p.thread |= code[at] == 0x64;
    p.by_gs |= code[at] == 0x65;
  }
  if (at < code.size() && (code[at] & 0xf0) == 0x40) p.rex = code[at++];
  p.wide = p.rex & 8;
  return at;
}

struct Decoded {
  std::size_t bytes = 0;  ///< 0: not known, or truncated
  Prefixes prefixes = {};
  /// Opcode map: one byte; after 0f; others do not affect control flow.
  enum Map { one, of_0f, other } map = one;
  std::uint8_t operation = 0;
  std::size_t operand = 0;  ///< offset of ModRM
};

Decoded decode(CodeBytes code) {
  code = code.first(std::min(code.size(), kLongestInstruction));
  Decoded d;
  auto& p = d.prefixes;
  auto at = read_prefixes(code, p);
  auto has = [&](std::size_t bytes) { return at + bytes <= code.size(); };
  if (!has(1)) return {};
  const auto operation = d.operation = code[at++];
  Shape s;
  d.map = Decoded::other;
  if (operation == 0xc5 && has(2)) {
    s = shape_of_map(1, code[at + 1]);
    at += 2;
  } else if (operation == 0xc4 && has(3)) {
    s = shape_of_map(code[at] & 31, code[at + 2]);
    at += 3;
  } else if (operation == 0x62 && has(4)) {
    // Map 4 belongs to APX; the maps of 16-bit floating point have the shape of map 2.
    const unsigned map = code[at] & 7;
    s = shape_of_map(map == 5 || map == 6 ? 2 : map, code[at + 3]);
    at += 4;
  } else if (operation == 0x0f && has(1)) {
    const auto second = d.operation = code[at++];
    d.map = Decoded::of_0f;
    if (second == 0x38 || second == 0x3a)
      s = {has(1), true, second == 0x3a ? std::size_t{1} : 0}, at++, d.map = Decoded::other;
    else
      s = shape_of_0f(second, p);
  } else {
    d.map = Decoded::one;
    s = shape(operation, has(1) ? code[at] : 0, p);
  }
  if (!s.known || (s.operand && !has(1))) return {};
  d.operand = at;
  if (s.operand) at += operand_bytes(code, at);
  if (!has(s.bytes)) return {};
  d.bytes = at + s.bytes;
  return d;
}

/// The signed immediate at an instruction's end.
std::int64_t last_constant(CodeBytes code, std::size_t end, std::size_t bytes) {
  std::int64_t value = code[end - 1] - ((code[end - 1] & 0x80) << 1);
  for (std::size_t i = 2; i <= bytes; i++) value = value * 256 + code[end - i];
  return value;
}

/// Opcode FF: calls, jumps, inc, dec, push.
Flow flow_of_ff(const Decoded& d, std::uint8_t operand) {
  Flow f{.kind = Flow::next, .bytes = d.bytes};
  const unsigned reg = operand >> 3 & 7;
  if (reg == 2 || reg == 3) f.kind = Flow::call;
  if (reg == 5 || reg == 7) f.kind = Flow::unknown;
  if (reg != 4) return f;
  f.kind = d.prefixes.tracked ? Flow::indirect : Flow::by_table;
  if (operand >> 6 == 3) f.address_in = static_cast<int>((operand & 7) | (d.prefixes.rex & 1) << 3);
  return f;
}

}  // namespace

std::size_t instruction_bytes(CodeBytes code) { return decode(code).bytes; }

Flow flow_of(CodeBytes code) {
  const auto d = decode(code);
  if (!d.bytes) return {};
  Flow f{.kind = Flow::next, .bytes = d.bytes};
  auto leads = [&](Flow::Kind kind, std::size_t constant) {
    f.kind = kind;
    f.target = static_cast<std::int64_t>(d.bytes) + last_constant(code, d.bytes, constant);
    return f;
  };
  const auto operation = d.operation;
  if (d.map == Decoded::of_0f) {
    if (operation >= 0x80 && operation < 0x90) return leads(Flow::branch, 4);
    if (operation == 0x0b) f.kind = Flow::ends;                          // ud2
    if (operation == 0x07 || operation == 0x35) f.kind = Flow::unknown;  // sysret, sysexit
    return f;
  }
  if (d.map != Decoded::one) return f;
  if ((operation & 0xf0) == 0x70 || (operation & 0xfc) == 0xe0) return leads(Flow::branch, 1);
  switch (operation) {
    case 0x01:
    case 0x03: {
      const unsigned rm = (code[d.operand] & 7) | (d.prefixes.rex & 1) << 3;
      const unsigned reg = (code[d.operand] >> 3 & 7) | (d.prefixes.rex & 4) << 1;
      if (operation == 3 || code[d.operand] >> 6 == 3)
        f.address_in = static_cast<int>(operation == 1 ? rm : reg);
      break;
    }
    case 0xc2:
    case 0xc3:
      f.kind = Flow::returns;
      break;
    case 0xca:
    case 0xcb:
    case 0xcf:
      f.kind = Flow::unknown;
      break;
    case 0xcc:
    case 0xf4:
      f.kind = Flow::ends;
      break;
    case 0xe8:
      f.kind = Flow::call;
      break;
    case 0xe9:
      return leads(Flow::jump, 4);
    case 0xeb:
      return leads(Flow::jump, 1);
    case 0xff:
      return flow_of_ff(d, code[d.operand]);
    default:
      break;
  }
  return f;
}

std::optional<std::int64_t> jump_by_word(CodeBytes stub) {
  constexpr std::uint8_t kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  std::size_t before = 0;
  if (stub.size() > 4 &&
      std::equal(std::begin(kBranchTarget), std::end(kBranchTarget), stub.begin()))
    before = 4;
  auto code = stub.subspan(before);
  auto d = decode(code);
  constexpr std::uint8_t kByWord = 0x25;  // jmp *constant(%rip)
  if (!d.bytes || d.map != Decoded::one || d.operation != 0xff || code[d.operand] != kByWord)
    return {};
  return static_cast<std::int64_t>(before + d.bytes) + last_constant(code, d.bytes, 4);
}

namespace {

struct Operands {
  unsigned reg, rm;
  bool in_register;  ///< rm is a register
  /// Its memory is the file's or the thread's, or on the stack: a load cannot fault.
  bool safe;
  bool on_stack;
};
constexpr unsigned kStack = 4;  // rsp
Operands operands_of(const Decoded& d, CodeBytes code) {
  const unsigned modrm = code[d.operand], mode = modrm >> 6, rex = d.prefixes.rex;
  Operands o{(modrm >> 3 & 7) | (rex & 4) << 1, (modrm & 7) | (rex & 1) << 3, mode == 3, mode == 3,
             false};
  if (mode == 3 || d.prefixes.by_gs) return o;
  if ((modrm & 7) == 5 && mode == 0) o.safe = !d.prefixes.thread;  // relative to rip
  if ((modrm & 7) != 4) return o;
  const unsigned sib = code[d.operand + 1], index = (sib >> 3 & 7) | (rex & 2) << 2;
  const bool absolute = mode == 0 && (sib & 7) == 5, stack = (sib & 7) == 4 && !(rex & 1);
  o.safe = index == 4 && (d.prefixes.thread ? absolute : stack);
  o.on_stack = o.safe && stack && !d.prefixes.thread;
  return o;
}

/// Opcodes after 0f that write `reg`; with prefix f3 those of popcnt, tzcnt and lzcnt.
bool writes_reg(std::uint8_t operation, bool repeat) {
  using namespace std::string_view_literals;
  if (is_among(operation, "\xb8\xbc\xbd"sv)) return repeat || operation != 0xb8;
  return (operation & 0xf0) == 0x40 ||  // cmov
         is_among(operation, "\xaf\xb6\xb7\xbe\xbf\x2c\x2d\x50\xc5\xd7"sv);
}

/// Opcodes after 0f that write a register of SSE.
bool writes_vector(std::uint8_t operation, bool f3) {
  using namespace std::string_view_literals;
  if (operation == 0x7e) return f3;
  return (operation > 0x50 && operation < 0x77) ||
         (operation >= 0xd0 && !is_among(operation, "\xd6\xd7\xe7\xf7\xff"sv)) ||
         is_among(operation, "\x10\x12\x14\x15\x16\x28\x2a\x2e\x2f\xc2\xc4\xc6"sv);
}

/// Sets what the instruction changes and reads, if it writes registers alone.
void see_effects(EntryStep& step, const Decoded& d, CodeBytes code) {
  using namespace std::string_view_literals;
  const auto operation = d.operation;
  const bool has_operand = d.operand && d.operand < d.bytes, repeat = d.prefixes.repeat;
  const unsigned rex = d.prefixes.rex, low = (operation & 7) | (rex & 1) << 3;
  auto changes = [&](std::uint32_t registers) {
    step.harmless = true;
    step.changes = registers;
  };
  // Without REX, the numbers 4 to 7 mean the second bytes of registers 0 to 3.
  auto byte = [&](unsigned reg) { return bit(reg) | (rex ? 0 : bit(reg & 3)); };
  if (d.map == Decoded::other || (d.map == Decoded::one && repeat)) return;
  if (d.map == Decoded::one) {
    if (operation < 0x40 && (operation & 6) == 4) return changes(operation >= 0x38 ? 0 : bit(0));
    if (operation == 0xa8 || operation == 0xa9) return changes(0);  // test
    if (operation >= 0xb0 && operation < 0xb8) return changes(byte(low));
    if (operation >= 0xb8 && operation < 0xc0) return changes(bit(low));
    if (operation == 0x68 || operation == 0x6a) return changes(bit(kStack));  // push
    if (operation == 0x98) return changes(bit(0));                            // cltq
    if (operation == 0x99) return changes(bit(2));                            // cqto
    if (operation == 0x90 && !low) return changes(0);
  }
  if (!has_operand) return;
  const auto o = operands_of(d, code);
  const unsigned group = o.reg & 7;
  if (d.map == Decoded::of_0f) {
    if (operation == 0x1f || (operation == 0x1e && (!repeat || code[d.operand] >= 0xfa)))
      return changes(0);  // nops, endbr64 and endbr32
    step.may_fault = !o.safe;
    if ((operation & 0xf0) == 0x90 && o.in_register) return changes(byte(o.rm));  // set
    if (writes_reg(operation, repeat)) return changes(bit(o.reg));
    if (writes_vector(operation, repeat)) return changes(0);
    return;
  }
  const bool arithmetic = operation < 0x40 && (operation & 7) < 4;
  const bool constant = operation == 0x80 || operation == 0x81 || operation == 0x83;
  const bool unary = operation == 0xf6 || operation == 0xf7;
  step.may_fault = !o.safe && operation != 0x8d;
  if ((arithmetic && operation >= 0x38) || operation == 0x84 || operation == 0x85 ||
      (constant && group == 7) || (unary && group < 2))
    return changes(0);  // cmp, test
  const bool pushed = operation == 0xff && group == 6;
  const bool stored =
      (is_among(operation, "\x88\x89"sv) || (operation >> 1 == 0x63 && !group)) && o.on_stack;
  if (pushed || stored) return changes(bit(kStack));
  if (unary && (group == 4 || group == 5)) return changes(bit(0) | bit(2));  // mul, imul
  if ((arithmetic && operation & 2) || is_among(operation, "\x63\x69\x6b\x8a\x8b\x8d"sv))
    return changes(operation & 1 ? bit(o.reg) : byte(o.reg));
  const bool shift = is_among(operation, "\xc0\xc1\xd0\xd1\xd2\xd3"sv);
  const bool stores = is_among(operation, "\x88\x89"sv) || (operation >> 1 == 0x63 && !group) ||
                      (operation >> 1 == 0x7f && group < 2);
  if (o.in_register && (arithmetic || constant || unary || shift || stores) &&
      (!unary || group < 4))
    return changes(operation & 1 ? bit(o.rm) : byte(o.rm));
}

}  // namespace

EntryStep entry_step(CodeBytes code) {
  const auto d = decode(code);
  EntryStep step{.bytes = d.bytes};
  if (!d.bytes) return step;
  see_effects(step, d, code);
  const auto operation = d.operation;
  const bool one = d.map == Decoded::one;
  const std::size_t opcode = one ? 1 : 2;
  if (one && operation >= 0x50 && operation < 0x58 &&
      d.bytes == (d.prefixes.rex == 0x41 ? std::size_t{2} : 1))
    step.form = EntryStep::push;
  if (one && operation == 0x90 && d.bytes == 1) step.form = EntryStep::nop;
  const bool near = (one && (operation == 0xe8 || operation == 0xe9)) ||
                    (d.map == Decoded::of_0f && (operation & 0xf0) == 0x80);
  const bool short_one = one && ((operation & 0xf0) == 0x70 || operation == 0xeb);
  if ((near && d.bytes == opcode + 4) || (short_one && d.bytes == 2)) step.form = EntryStep::branch;
  return step;
}

/// System V ABI AMD64, 3.2.3.
std::uint32_t entry_registers(unsigned arguments, bool stack) {
  constexpr unsigned kArguments[] = {7, 6, 2, 1, 8, 9}, kFrame = 5;
  std::uint32_t all = stack ? bit(kStack) | bit(kFrame) : 0;
  for (auto reg : std::span(kArguments).first(std::min<std::size_t>(arguments, 6))) all |= bit(reg);
  return all;
}

#else

namespace {

std::uint32_t word_of(CodeBytes code) {
  return code[0] | code[1] << 8 | code[2] << 16 | std::uint32_t{code[3]} << 24;
}

}  // namespace

/// Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1; programs read six arguments.
std::uint32_t entry_registers(unsigned arguments, bool stack) {
  constexpr unsigned kRead = 6, kAll = 9, kFrame = 29, kLink = 30;
  return (bit(arguments < kRead ? arguments : kAll) - 1) |
         (stack ? bit(kFrame) | bit(kLink) | bit(kArm64Stack) : 0);
}

std::optional<std::int64_t> jump_by_word(CodeBytes) { return {}; }

EntryStep entry_step(CodeBytes code) {
  return code.size() < 4 ? EntryStep{} : entry_step_of_arm64(word_of(code));
}

std::size_t instruction_bytes(CodeBytes code) { return code.size() < 4 ? 0 : 4; }

Flow flow_of(CodeBytes code) {
  if (code.size() < 4) return {};
  const auto i = word_of(code);
  Flow f{.kind = Flow::next, .bytes = 4};
  auto leads = [&](Flow::Kind kind, unsigned low, unsigned bits) {
    f.kind = kind;
    f.target = (static_cast<std::int64_t>(i) << (64 - low - bits)) >> (64 - bits) << 2;
    return f;
  };
  if (i >> 26 == 0x05) return leads(Flow::jump, 0, 26);  // b
  if (i >> 24 == 0x54 || (i & 0x7e000000) == 0x34000000) return leads(Flow::branch, 5, 19);
  if ((i & 0x7e000000) == 0x36000000) return leads(Flow::branch, 5, 14);  // tbz
  if (i >> 26 == 0x25) return leads(Flow::call, 0, 26);                   // bl
  if ((i & 0xfefff000) == 0xd63f0000) f.kind = Flow::call;                // blr
  if ((i & 0xfffff000) == 0xd65f0000) f.kind = Flow::returns;             // also retaa
  if ((i & 0xfefff000) == 0xd61f0000) f.kind = Flow::indirect, f.address_in = i >> 5 & 31;  // br
  if (i >> 24 == 0xd4) f.kind = (i & 0x00e0001f) == 1 ? Flow::next : Flow::ends;  // svc, or brk
  if (i >> 16 == 0) f.kind = Flow::ends;                                          // udf
  if ((i & 0xff200000) == 0x8b000000 || (i & 0xff200000) == 0x8b200000) f.address_in = i & 31;
  return f;
}

#endif

InstructionAt instruction_at(CodeBytes code, std::size_t place) {
  InstructionAt found;
  while (found.begin < code.size()) {
    auto bytes = instruction_bytes(code.subspan(found.begin));
    if (!bytes) return found;
    found.end = found.begin + bytes;
    if (found.end > place) {
      found.known = true;
      return found;
    }
    found.begin = found.end;
  }
  return found;
}

}  // namespace coretap::symbols
