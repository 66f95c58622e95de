#include "program/pads.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/targets/expression.h"

namespace coretap {

namespace {

/// "r0 = value"
bool sets_result(const bpf_insn& insn, std::int32_t value) {
  return insn.code == (BPF_ALU64 | BPF_MOV | BPF_K) && insn.dst_reg == BPF_REG_0 &&
         insn.imm == value;
}

struct Room {
  const std::vector<bpf_insn>* pad = nullptr;  ///< the instructions to insert; null: none
  std::size_t size = 0;
};

Room room_at(const bpf_insn& which, const Pads& pads) {
  const bool is_short = pads.filter_is_short();
  if (sets_result(which, EXPRESSION_SHORT))
    return {is_short ? &pads.filter : nullptr, EXPRESSION_SHORT_ROOM};
  if (sets_result(which, EXPRESSION_FILTER))
    return {is_short ? nullptr : &pads.filter, EXPRESSION_ROOM};
  return {&pads.output, EXPRESSION_ROOM};
}

}  // namespace

bool Pads::filter_is_short() const {
  return filter.size() <= EXPRESSION_SHORT_ROOM &&
         std::none_of(filter.begin(), filter.end(), [](auto& insn) {
           return insn.src_reg == BPF_REG_10 || insn.dst_reg == BPF_REG_10;
         });
}

Result<void> check_pads(const Pads& pads) {
  const auto most = std::max(pads.filter.size(), pads.output.size());
  if (most <= EXPRESSION_ROOM) return {};
  return Error{
      "the expressions are too long",
      fmt::format("they come to {} instructions, there is room for {}", most, EXPRESSION_ROOM),
      "name fewer probes or shorter expressions", kUsage};
}

void fill_pads(std::span<bpf_insn> code, const Pads& pads) {
  if (pads.empty()) return;
  for (std::size_t at = 0; at + 2 < code.size(); at++) {
    if (!sets_result(code[at], EXPRESSION_MARK)) continue;
    auto room = room_at(code[at + 1], pads);
    if (!room.pad || at + 2 + room.size > code.size()) continue;
    // The rest of the pad keeps its dead instructions, which the verifier removes.
    std::copy(room.pad->begin(), room.pad->end(),
              code.begin() + static_cast<std::ptrdiff_t>(at) + 2);
  }
}

}  // namespace coretap
