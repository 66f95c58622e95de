#include "program/exchange.hpp"

#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

bool exchange_fits(Session& s) {
  if (!set_variable(s, "has_exchange", 0)) return true;
  return s.kernel.has_exchange() && set_variable(s, "has_exchange", 1);
}

void take_out_exchanges(std::span<bpf_insn> code) {
  const bpf_insn nothing{BPF_JMP | BPF_JA, 0, 0, 0, 0};
  for (auto& insn : code)
    if (insn.code == (BPF_STX | BPF_DW | BPF_ATOMIC) && insn.imm == BPF_XCHG) insn = nothing;
}

}  // namespace coretap
