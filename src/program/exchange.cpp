#include "program/exchange.hpp"

#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <vector>

#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

bool exchange_fits(Session& s) {
  if (!set_variable(s, "has_exchange", 0)) return true;
  return s.kernel.has_exchange() && set_variable(s, "has_exchange", 1);
}

void take_out_exchanges(bpf_program* program) {
  const bpf_insn nothing{BPF_JMP | BPF_JA, 0, 0, 0, 0};
  auto* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  for (auto& insn : code)
    if (insn.code == (BPF_STX | BPF_DW | BPF_ATOMIC) && insn.imm == BPF_XCHG) insn = nothing;
  bpf_program__set_insns(program, code.data(), code.size());
}

}  // namespace coretap
