#include "program/instructions.hpp"

#include <string_view>
#include <vector>

#include "lib/core/placeholders.h"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

constexpr bpf_insn kNothing{BPF_JMP | BPF_JA, 0, 0, 0, 0};

bool is_placeholder(const bpf_insn& insn, std::int32_t call) {
  return insn.code == (BPF_JMP | BPF_CALL) && !insn.src_reg && insn.imm == call;
}

/// Tracepoints within a spinlock, or in interrupts.
bool is_unpreempted(std::string_view tracepoint) {
  for (auto* each : {"sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new",
                     "sched_migrate_task", "sched_stat_runtime"})
    if (tracepoint == each) return true;
  return tracepoint.starts_with("irq_handler_") || tracepoint.starts_with("softirq_");
}

bool is_at_function(const Section& at) { return at.kind == "fentry" || at.kind == "fexit"; }

/// Of programs with placeholders.
bool is_at_tracepoint(const Section& at) {
  return at.kind == "tracepoint" || at.kind == "raw_tp" ||
         (at.kind == "target" && at.target == "tracepoint") ||
         (at.kind == "tp_btf" && !is_unpreempted(at.target));
}

}  // namespace

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
    if (!is_placeholder(insn, CAST_CALL)) continue;
    insn.src_reg = BPF_PSEUDO_KFUNC_CALL;
    insn.imm = static_cast<std::int32_t>(function);
  }
}

Kernel::Preemption preemption_of(Session& s) {
  bool at_tracepoints = false, at_functions = false;
  for (auto* program : programs_of(s.object.get())) {
    if (!bpf_program__autoload(program)) continue;
    at_functions |= is_at_function(section_of(program));
    at_tracepoints |= is_at_tracepoint(section_of(program));
  }
  return at_tracepoints || at_functions ? s.kernel.preemption(at_functions) : Kernel::Preemption();
}

void complete_preemption(std::span<bpf_insn> code, const Section& at,
                         const Kernel::Preemption& preemption) {
  const bool off = (is_at_function(at) && preemption.disable) ||
                   (is_at_tracepoint(at) && preemption.at_tracepoints);
  for (auto& insn : code) {
    const bool disables = is_placeholder(insn, PREEMPT_DISABLE_CALL);
    if (!disables && !is_placeholder(insn, PREEMPT_ENABLE_CALL)) continue;
    if (!off) {
      insn = kNothing;
      continue;
    }
    insn.src_reg = BPF_PSEUDO_KFUNC_CALL;
    insn.imm = static_cast<std::int32_t>(disables ? preemption.disable : preemption.enable);
  }
}

bool exchange_fits(Session& s) {
  if (!set_variable(s, "has_exchange", 0)) return true;
  return s.kernel.has_exchange() && set_variable(s, "has_exchange", 1);
}

void take_out_exchanges(std::span<bpf_insn> code) {
  for (auto& insn : code)
    if (insn.code == (BPF_STX | BPF_DW | BPF_ATOMIC) && insn.imm == BPF_XCHG) insn = kNothing;
}

}  // namespace coretap
