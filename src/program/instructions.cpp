#include "program/instructions.hpp"

#include <string_view>
#include <vector>

#include "lib/core/follow.h"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

std::uint32_t tell_types(Session& s) {
  constexpr std::string_view kId = "type_id_";
  std::vector<std::string_view> types;
  std::vector<std::uint32_t> offsets;
  each_constant(s, [&](std::string_view name, std::uint32_t offset, std::uint32_t) {
    if (!name.starts_with(kId)) return;
    types.push_back(name.substr(kId.size()));
    offsets.push_back(offset);
  });
  auto casts = types.empty() ? Kernel::Casts() : s.kernel.casts(types);
  for (std::size_t i = 0; i < casts.to.size(); i++)
    edit_rodata(s, offsets[i], &casts.to[i], sizeof casts.to[i]);
  return casts.function;
}

void complete_casts(std::span<bpf_insn> code, std::uint32_t function) {
  if (!function) return;
  for (auto& insn : code) {
    if (insn.code != (BPF_JMP | BPF_CALL) || insn.src_reg || insn.imm != CAST_CALL) continue;
    insn.src_reg = BPF_PSEUDO_KFUNC_CALL;
    insn.imm = static_cast<std::int32_t>(function);
  }
}

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
