#include "program/pads.hpp"

#include <bpf/libbpf.h>

#include <algorithm>

#include <fmt/format.h>

#include "lib/expression.h"

namespace coretap {

namespace {

/// "r0 = value"
bool sets_result(const bpf_insn& insn, std::int32_t value) {
  return insn.code == (BPF_ALU64 | BPF_MOV | BPF_K) && insn.dst_reg == BPF_REG_0 &&
         insn.imm == value;
}

}  // namespace

Result<void> check_pads(const Pads& pads) {
  const auto most = std::max(pads.filter.size(), pads.output.size());
  if (most <= EXPRESSION_ROOM) return {};
  return Error{
      "the expressions are too long",
      fmt::format("they come to {} instructions, there is room for {}", most, EXPRESSION_ROOM),
      "name fewer probes or shorter expressions", kUsage};
}

void fill_pads(bpf_program* program, const Pads& pads) {
  if (pads.empty()) return;
  auto* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  for (std::size_t at = 0; at + 2 + EXPRESSION_ROOM <= code.size(); at++) {
    if (!sets_result(code[at], EXPRESSION_MARK)) continue;
    auto& pad = sets_result(code[at + 1], EXPRESSION_FILTER) ? pads.filter : pads.output;
    // What is left of the room stays; the verifier takes it out.
    std::copy(pad.begin(), pad.end(), code.begin() + static_cast<std::ptrdiff_t>(at) + 2);
  }
  bpf_program__set_insns(program, code.data(), code.size());
}

}  // namespace coretap
