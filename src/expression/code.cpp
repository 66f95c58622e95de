#include "expression/code.hpp"

#include <limits>

namespace coretap::expression {

void Code::add(int code, int to, int from, int offset, std::int32_t value) {
  bpf_insn insn{};
  insn.code = static_cast<std::uint8_t>(code);
  insn.dst_reg = static_cast<std::uint8_t>(to & 15);
  insn.src_reg = static_cast<std::uint8_t>(from & 15);
  insn.off = static_cast<std::int16_t>(offset);
  insn.imm = value;
  all_.push_back(insn);
}

void Code::set(int to, std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    add(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, static_cast<std::int32_t>(value));
    return;
  }
  add(BPF_LD | BPF_IMM | BPF_DW, to, 0, 0, static_cast<std::int32_t>(value));
  add(0, 0, 0, 0, static_cast<std::int32_t>(value >> 32));
}

Code::Label Code::jump_to(int comparison, int a, int b, bool by_register, std::int32_t value) {
  add(BPF_JMP | comparison | (by_register ? BPF_X : BPF_K), a, b, 0, value);
  return all_.size() - 1;
}

void Code::here(Label label) {
  auto distance = all_.size() - label - 1;
  too_far_ = too_far_ || distance > std::numeric_limits<std::int16_t>::max();
  all_.at(label).off = static_cast<std::int16_t>(distance);
}

}  // namespace coretap::expression
