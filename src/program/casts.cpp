#include "program/casts.hpp"

#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/follow.h"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

constexpr std::string_view kId = "type_id_";

std::uint32_t function = 0;

struct Followed {
  std::string_view type;
  std::uint32_t offset;
};

}  // namespace

void tell_types(Session& s) {
  std::vector<Followed> followed;
  each_constant(s, [&](std::string_view name, std::uint32_t offset, std::uint32_t) {
    if (name.starts_with(kId)) followed.push_back({name.substr(kId.size()), offset});
  });
  function = followed.empty() ? 0 : s.kernel.cast_function();
  if (!function) return;
  std::vector<std::string_view> names;
  names.reserve(followed.size());
  for (auto& f : followed) names.push_back(f.type);
  auto ids = s.kernel.structures(names);
  for (std::size_t i = 0; i < followed.size(); i++)
    edit_rodata(s, followed[i].offset, &ids[i], sizeof ids[i]);
}

void complete_casts(bpf_program* program) {
  if (!function) return;
  auto* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  for (auto& insn : code) {
    if (insn.code != (BPF_JMP | BPF_CALL) || insn.src_reg || insn.imm != CAST_CALL) continue;
    insn.src_reg = BPF_PSEUDO_KFUNC_CALL;
    insn.imm = static_cast<std::int32_t>(function);
  }
  bpf_program__set_insns(program, code.data(), code.size());
}

}  // namespace coretap
