#include <string.h>

#include <algorithm>
#include <set>

#include "cfi/runtime_code.hpp"

namespace coretap::unwind {
namespace {

constexpr std::uint64_t kInstruction = 4, kWord = 8, kAlignment = 16;
// Arm ARM, chapter C6.
constexpr std::uint32_t kReturn = 0xd65f03c0, kNop = 0xd503201f;
constexpr std::uint32_t kJumpByLinkage = 0xd61f0200;    // br x16
constexpr std::uint32_t kSigreturnNumber = 0xd2801168;  // mov x8, #139
constexpr std::uint32_t kSystemCall = 0xd4000001;       // svc #0
constexpr unsigned kFrame = 29, kLink = 30, kStack = 31;

unsigned field(std::uint32_t word, unsigned at, unsigned bits) {
  return word >> at & ((1U << bits) - 1);
}
std::int64_t signed_field(std::uint32_t word, unsigned at, unsigned bits) {
  const auto value = static_cast<std::int64_t>(field(word, at, bits));
  return value - (value >> (bits - 1) << bits);
}

/// A store or load of two registers that changes sp.
struct Pair {
  bool loads = false;
  unsigned first = 0, second = 0;
  std::int64_t bytes = 0;  ///< added to sp
};
/// stp A, B, [sp, #-N]! and ldp A, B, [sp], #N.
bool is_pair(std::uint32_t word, Pair& pair) {
  const auto kind = word & 0xffc00000;
  if ((kind != 0xa9800000 && kind != 0xa8c00000) || field(word, 5, 5) != kStack) return false;
  pair = {.loads = kind == 0xa8c00000,
          .first = field(word, 0, 5),
          .second = field(word, 10, 5),
          .bytes = signed_field(word, 15, 7) * static_cast<std::int64_t>(kWord)};
  return true;
}

/// May the instruction change sp in another way?
bool changes_stack(std::uint32_t word) {
  // Those that set flags have xzr as their result.
  const bool arithmetic = (word & 0x3f80001f) == 0x1100001f ||  // add, sub of a number, to sp
                          (word & 0x3fe0001f) == 0x0b20001f;    // of a register
  const bool moves_base = field(word, 5, 5) == kStack &&
                          ((word & 0x3b200400) == 0x38000400 ||  // one register, with write-back
                           (word & 0x3a800000) == 0x28800000);   // two registers
  return arithmetic || moves_base;
}

unwind_rule framed(const Pair& pair) {
  unwind_rule rule{.cfa = UNWIND_SP, .offset = static_cast<std::int32_t>(-pair.bytes)};
  const auto slot = static_cast<std::int16_t>(pair.bytes / static_cast<std::int64_t>(kWord));
  rule.ra_slot = static_cast<std::int16_t>(slot + 1);
  if (pair.first == kFrame) {
    rule.bp = UNWIND_BP_AT_CFA;
    rule.bp_slot = slot;
  }
  return rule;
}

}  // namespace

void read_arm64_code(std::span<const std::uint8_t> code, std::uint64_t address, const OnRow& row) {
  constexpr unwind_rule kLeaf{.cfa = UNWIND_SP};
  const auto word_at = [&](std::uint64_t at) {
    std::uint32_t word = 0;
    if (at + sizeof word <= code.size()) ::memcpy(&word, code.data() + at, sizeof word);
    return word;
  };
  const auto is_sigreturn = [&](std::uint64_t at) {
    return word_at(at) == kSigreturnNumber && word_at(at + kInstruction) == kSystemCall;
  };
  std::uint64_t at = (kInstruction - address % kInstruction) % kInstruction;
  std::set<std::uint64_t> called;
  for (auto i = at; i + kInstruction <= code.size(); i += kInstruction)
    if (field(word_at(i), 26, 6) == 0x25)
      called.insert(i + static_cast<std::uint64_t>(signed_field(word_at(i), 0, 26) * 4));
  unwind_rule frame = kLeaf, now = kLeaf;
  row(address, kLeaf);
  const auto set = [&](std::uint64_t from, const unwind_rule& rule) {
    now = rule;
    row(address + from, rule);
  };
  for (bool ended = false; at + kInstruction <= code.size(); at += kInstruction) {
    const auto word = word_at(at);
    if (called.contains(at) || (ended && (address + at) % kAlignment == 0)) set(at, frame = kLeaf);
    // A handler returns to there: no call precedes it, but the byte before is looked up.
    if (is_sigreturn(at) || is_sigreturn(at + kInstruction)) {
      row(address + at, {.cfa = UNWIND_SIGNAL});
      at += is_sigreturn(at) ? kInstruction : 2 * kInstruction;
      set(std::min<std::uint64_t>(at + kInstruction, code.size()), frame = kLeaf);
      continue;
    }
    Pair pair;
    const bool is = is_pair(word, pair);
    if (is && !pair.loads && pair.second == kLink && now.cfa == UNWIND_SP && now.offset == 0)
      set(at + kInstruction, frame = framed(pair));
    else if (is && pair.loads && pair.second == kLink && now.ra_slot != 0 &&
             pair.bytes == now.offset)
      set(at + kInstruction, kLeaf);
    else if (changes_stack(word))
      set(at + kInstruction, frame = {});
    // ret, b; br x16 and br x17, with which linkage tables jump.
    const bool leaves =
        word == kReturn || field(word, 26, 6) == 0x05 || (word & ~(1U << 5)) == kJumpByLinkage;
    // Behind it, code of the same function that was jumped to.
    if (leaves && !same_rule(now, frame)) set(at + kInstruction, frame);
    ended = leaves || (ended && (word == kNop || word == 0));
  }
  row(address + code.size(), {});
}

}  // namespace coretap::unwind
