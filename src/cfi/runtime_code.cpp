#include "cfi/runtime_code.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace coretap::unwind {
namespace {

// Compares with bytes in hexadecimal; a dot matches any digit.
bool matches(std::span<const std::uint8_t> code, std::string_view pattern) {
  const auto digit = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < pattern.size(); i += 2, ++at) {
    while (pattern[i] == ' ') ++i;
    if (at == code.size()) return false;
    if (pattern[i] != '.' && digit(pattern[i]) != code[at] >> 4) return false;
    if (pattern[i + 1] != '.' && digit(pattern[i + 1]) != (code[at] & 15)) return false;
  }
  return true;
}

struct Beginning {
  std::string_view pattern;
  int functions;  // number of consecutive functions
};

// crtstuff: deregister_tm_clones, register_tm_clones, __do_global_dtors_aux, frame_dummy.
constexpr int kCrtstuff = 4;
constexpr auto kBeginnings = std::to_array<Beginning>({
    {"48 8d 3d ........ 48 8d 05 ........ 48 39 f8 74", kCrtstuff},
    {"48 8d 3d ........ 55 48 8d 05 ........ 48 39 f8", kCrtstuff},     // gcc 6, 7
    {"48 8d 05 ........ 48 8d 3d ........ 55 48 29 f8", kCrtstuff},     // gcc 4, 5
    {"b8 ........ 48 3d ........ 74", kCrtstuff},                       // position dependent
    {"b8 ........ 55 48 2d ........ 48 83 f8 0e 48 89 e5", kCrtstuff},  // gcc 4 to 6
    {"55 b8 ........ 48 3d ........ 48 89 e5 74", kCrtstuff},           // gcc 7
    {"48 83 ec 08 48 8b 05 ........ 48 85 c0 74", 1},                   // _init
    {"f3 0f 1e fa 48 83 ec 08 48 8b 05 ........ 48 85 c0 74", 1},
    {"48 83 ec 08 48 c7 c0 ........ 48 85 c0 74", 1},  // linked statically
    {"f3 0f 1e fa 48 83 ec 08 48 c7 c0 ........ 48 85 c0 74", 1},
    {"48 83 ec 08 e8 ........ 48 83 c4 08 c3", 1},
    {"48 83 ec 08 48 83 c4 08 c3", 1},  // _fini
    {"f3 0f 1e fa 48 83 ec 08 48 83 c4 08 c3", 1},
});

enum class Effect : std::uint8_t {
  none,
  push8,  // rsp -= 8
  pop8,   // rsp += 8
  push_bp,
  pop_bp,
  jump_if,    // with a 1-byte offset
  jump_if_4,  // with a 4-byte offset
  leaves,     // return or tail call, with the stack as on entry
  stops,
};

struct Instruction {
  std::string_view pattern;
  std::uint8_t size;
  Effect effect = Effect::none;
};

// All instructions that occur in the functions above. Only those marked write rsp or rbp.
constexpr auto kInstructions = std::to_array<Instruction>({
    {"f3 0f 1e fa", 4},                 // endbr64
    {"48 83 ec 08", 4, Effect::push8},  // sub $8,%rsp
    {"48 83 c4 08", 4, Effect::pop8},   // add $8,%rsp
    {"55", 1, Effect::push_bp},         // push %rbp
    {"5d", 1, Effect::pop_bp},          // pop %rbp
    {"48 89 e5", 3},                    // mov %rsp,%rbp: only the pushed value matters
    {"48 8d 3d", 7},                    // lea x(%rip),%rdi
    {"48 8d 35", 7},                    // ... %rsi
    {"48 8d 05", 7},                    // ... %rax
    {"48 8b 3d", 7},                    // mov x(%rip),%rdi
    {"48 8b 05", 7},                    // ... %rax
    {"48 c7 c0", 7},                    // mov $x,%rax
    {"b8", 5},                          // mov $x,%eax
    {"be", 5},                          // ... %esi
    {"bf", 5},                          // ... %edi
    {"31 c0", 2},                       // xor %eax,%eax
    {"48 89 f0", 3},                    // mov %rsi,%rax
    {"48 89 c6", 3},                    // mov %rax,%rsi
    {"48 85 c0", 3},                    // test %rax,%rax
    {"48 39 f8", 3},                    // cmp %rdi,%rax
    {"48 29 f8", 3},                    // sub %rdi,%rax
    {"48 29 fe", 3},                    // sub %rdi,%rsi
    {"48 01 c6", 3},                    // add %rax,%rsi
    {"48 01 d0", 3},                    // add %rdx,%rax
    {"48 01 d6", 3},                    // add %rdx,%rsi
    {"48 89 c2", 3},                    // mov %rax,%rdx
    {"48 89 f2", 3},                    // mov %rsi,%rdx
    {"48 c1 ee", 4},                    // shr $n,%rsi
    {"48 c1 e8", 4},                    // ... %rax
    {"48 c1 ea", 4},                    // ... %rdx
    {"48 c1 f8", 4},                    // sar $n,%rax
    {"48 c1 fe", 4},                    // ... %rsi
    {"48 d1 fe", 3},                    // sar %rsi
    {"48 d1 f8", 3},                    // sar %rax
    {"48 83 f8", 4},                    // cmp $n,%rax
    {"48 3d", 6},                       // cmp $x,%rax
    {"48 2d", 6},                       // sub $x,%rax
    {"48 81 ee", 7},                    // sub $x,%rsi
    {"80 3d", 7},                       // cmpb $n,x(%rip)
    {"48 83 3d", 8},                    // cmpq $n,x(%rip)
    {"c6 05", 7},                       // movb $n,x(%rip)
    {"e8", 5},                          // call
    {"67 e8", 6},                       // call, as relaxed by the linker
    {"ff d0", 2},                       // call *%rax
    {"ff 15", 6},                       // call *x(%rip)
    {"74", 2, Effect::jump_if},         // je
    {"75", 2, Effect::jump_if},         // jne
    {"76", 2, Effect::jump_if},         // jbe
    {"0f 84", 6, Effect::jump_if_4},    // je
    {"0f 85", 6, Effect::jump_if_4},    // jne
    {"eb", 2, Effect::leaves},          // jmp
    {"e9", 5, Effect::leaves},          // jmp
    {"ff e0", 2, Effect::leaves},       // jmp *%rax
    {"c3", 1, Effect::leaves},          // ret
    {"f3 c3", 2, Effect::leaves},       // repz ret
    {"f4", 1, Effect::stops},           // hlt
});

constexpr auto kPadding = std::to_array<Instruction>({
    {"90", 1},
    {"66 90", 2},
    {"0f 1f 00", 3},
    {"0f 1f 40", 4},
    {"0f 1f 44", 5},
    {"66 0f 1f 44", 6},
    {"0f 1f 80", 7},
    {"0f 1f 84", 8},
    {"66 0f 1f 84", 9},
    {"2e 0f 1f 84", 9},
    {"66 2e 0f 1f 84", 10},
    {"66 66 2e 0f 1f 84", 11},
    {"cc", 1},
});

const Beginning* begins(std::span<const std::uint8_t> code) {
  constexpr std::uint8_t kFirst[] = {0x48, 0xb8, 0x55, 0xf3};
  if (code.empty() || std::find(std::begin(kFirst), std::end(kFirst), code[0]) == std::end(kFirst))
    return nullptr;  // most code
  for (const auto& each : kBeginnings)
    if (matches(code, each.pattern)) return &each;
  return nullptr;
}

template <std::size_t n>
const Instruction* find(const std::array<Instruction, n>& list,
                        std::span<const std::uint8_t> code) {
  for (const auto& each : list)
    if (code.size() >= each.size && matches(code, each.pattern)) return &each;
  return nullptr;
}

constexpr int kEntryDepth = 8;  // the return address

// Effect of the pushes so far.
struct Depth {
  int bytes = kEntryDepth;
  int bp = 0;  // saved this many bytes below the CFA; 0: still in rbp
  bool operator==(const Depth&) const = default;
  unwind_rule rule() const {
    constexpr int kSlot = 8;
    unwind_rule rule{.cfa = UNWIND_SP, .offset = bytes};
    if (bp != 0) {
      rule.bp = UNWIND_BP_AT_CFA;
      rule.bp_slot = static_cast<std::int16_t>(-bp / kSlot);
    }
    return rule;
  }
};

// Interprets one function; jumps go forward within it.
class Follower {
 public:
  explicit Follower(std::span<const std::uint8_t> code) : code_(code) {}

  /// The end of the function; nullopt if an instruction is not known.
  std::optional<std::size_t> follow(std::size_t begin) {
    rows_.clear();
    jumps_.clear();
    std::optional<Depth> depth = Depth{};
    for (std::size_t at = begin; at < code_.size();) {
      if (!arrive(at, depth)) return {};
      if (!depth) {
        if (jumps_.empty()) return at;
        const auto* padding = find(kPadding, code_.subspan(at));
        if (padding == nullptr) return {};
        at += padding->size;
        continue;
      }
      if (rows_.empty() || rows_.back().second != *depth) rows_.emplace_back(at, *depth);
      if (const auto* padding = find(kPadding, code_.subspan(at))) {
        at += padding->size;
        continue;
      }
      const auto* instruction = find(kInstructions, code_.subspan(at));
      if (instruction == nullptr || !apply(*instruction, at, depth)) return {};
      at += instruction->size;
    }
    return jumps_.empty() && !depth ? std::optional(code_.size()) : std::nullopt;
  }
  const auto& rows() const { return rows_; }

 private:
  // Jumps to this place must have the same depth as the code before it.
  bool arrive(std::size_t at, std::optional<Depth>& depth) {
    for (auto jump = jumps_.begin(); jump != jumps_.end();) {
      if (jump->first > at) {
        ++jump;
        continue;
      }
      if (jump->first < at || (depth && *depth != jump->second)) return false;
      depth = jump->second;
      jump = jumps_.erase(jump);
    }
    return true;
  }

  bool apply(const Instruction& instruction, std::size_t at, std::optional<Depth>& depth) {
    constexpr int kPush = 8;
    switch (instruction.effect) {
      case Effect::none:
        return true;
      case Effect::push_bp:
        if (depth->bp != 0) return false;
        depth->bytes += kPush;
        depth->bp = depth->bytes;
        return true;
      case Effect::pop_bp:
        if (depth->bp != depth->bytes) return false;
        depth->bytes -= kPush;
        depth->bp = 0;
        return true;
      case Effect::push8:
        depth->bytes += kPush;
        return true;
      case Effect::pop8:
        depth->bytes -= kPush;
        return depth->bytes >= kEntryDepth && depth->bytes >= depth->bp;
      case Effect::jump_if:
        return jump(at + instruction.size, offset<std::int8_t>(at + 1), *depth);
      case Effect::jump_if_4:
        return jump(at + instruction.size, offset<std::int32_t>(at + 2), *depth);
      case Effect::leaves:
        if (*depth != Depth{}) return false;
        depth.reset();
        return true;
      case Effect::stops:
        depth.reset();
        return true;
    }
    return false;
  }
  template <typename T>
  std::int32_t offset(std::size_t at) const {
    T value;
    std::copy_n(&code_[at], sizeof value, reinterpret_cast<std::uint8_t*>(&value));
    return value;
  }
  bool jump(std::size_t from, std::int32_t by, const Depth& depth) {
    if (by <= 0 || static_cast<std::size_t>(by) > code_.size() - from) return false;
    jumps_.emplace_back(from + static_cast<std::size_t>(by), depth);
    return true;
  }

  std::span<const std::uint8_t> code_;
  std::vector<std::pair<std::size_t, Depth>> rows_, jumps_;
};

// A procedure linkage table (PLT) without CFI: lld's, and that of statically linked programs.
// Returns its size in bytes; 0: there is none.
std::size_t read_linkage(std::span<const std::uint8_t> code, std::uint64_t address,
                         const OnRow& row) {
  constexpr std::string_view kHead = "ff 35 ........ ff 25 ........ 0f 1f 40 00";
  constexpr std::string_view kEntry = "ff 25 ........ 68 ........ e9";  // jmp, push, jmp
  constexpr std::string_view kJump = "ff 25 ........ 66 90";
  constexpr std::size_t kEntryBytes = 16, kJumpBytes = 8, kHeadPush = 6, kEntryPushed = 11;
  const auto length = [&](std::size_t from, std::string_view pattern, std::size_t each) {
    std::size_t end = from;
    while (code.size() - end >= each && matches(code.subspan(end), pattern)) end += each;
    return end;
  };
  if (address % kEntryBytes == 0 && matches(code, kHead)) {
    const auto end = length(kEntryBytes, kEntry, kEntryBytes);
    if (end == kEntryBytes) return 0;
    row(address, {.cfa = UNWIND_SP, .offset = 16});
    row(address + kHeadPush, {.cfa = UNWIND_SP, .offset = 24});
    row(address + kEntryBytes, {.cfa = UNWIND_PLT, .more = kEntryPushed});
    row(address + end, {});
    return end;
  }
  const auto end = length(0, kJump, kJumpBytes);
  if (end < 2 * kJumpBytes) return 0;
  row(address, {.cfa = UNWIND_SP, .offset = 8});
  row(address + end, {});
  return end;
}

}  // namespace

void read_runtime_code(std::span<const std::uint8_t> code, std::uint64_t address,
                       const OnRow& row) {
  constexpr std::uint64_t kAlignment = 4;
  Follower follower(code);
  for (std::size_t at = 0; at < code.size();) {
    at += (0 - (address + at)) % kAlignment;
    if (at >= code.size()) break;
    if (const auto bytes =
            code[at] == 0xff ? read_linkage(code.subspan(at), address + at, row) : 0) {
      at += bytes;
      continue;
    }
    const auto* beginning = begins(code.subspan(at));
    if (beginning == nullptr) {
      at += kAlignment;
      continue;
    }
    const auto first = at;
    for (int i = 0; i < beginning->functions; ++i) {
      const auto end = follower.follow(at);
      if (!end) break;
      for (const auto& [from, depth] : follower.rows()) row(address + from, depth.rule());
      row(address + *end, {});
      at = *end;
      while (const auto* padding = find(kPadding, code.subspan(at))) at += padding->size;
    }
    if (at == first) at += kAlignment;
  }
}

}  // namespace coretap::unwind
