#include "output/stacks.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace coretap {

namespace {

/// Our own program and what the kernel calls it through; not what the user asked about.
bool is_tracing(std::string_view name) {
  for (std::string_view own : {"bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_",
                               "bpf_trampoline_", "bpf_get_stack", "trace_call_bpf"})
    if (name.starts_with(own)) return true;
  return false;
}

}  // namespace

UserSymbols& Stacks::user_symbols() {
  if (!user_) user_ = std::make_unique<UserSymbols>();
  return *user_;
}

std::string Stacks::word(const Symbol& symbol, bool user) const {
  if (!symbol.known()) {
    if (modules_ && !symbol.module.empty())
      return fmt::format("[unknown] ({}+{:#x})", symbol.module, symbol.module_offset);
    return "[unknown]";
  }
  auto text = symbol.name;
  if (offsets_) text += fmt::format("+{:#x}", symbol.offset);
  if (user && modules_ && !symbol.module.empty()) text += fmt::format(" ({})", symbol.module);
  return text;
}

Frames Stacks::kernel(const stack& s) {
  if (!kernel_) kernel_ = std::make_unique<KernelSymbols>();
  Frames frames;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(s.depth, STACK_DEPTH); i++) {
    auto symbol = kernel_->find(s.ip[i]);
    if (frames.empty() && is_tracing(symbol.name)) continue;
    frames.push_back(word(symbol, false));
  }
  return frames;
}

Frames Stacks::user(pid_t tgid, const stack& s, Symbol* outermost) {
  Frames frames;
  // Only the leaf is where the task stood; the others are return addresses.
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(s.depth, STACK_DEPTH); i++) {
    auto symbol = user_symbols().find(tgid, s.ip[i], i == 0);
    frames.push_back(word(symbol, true));
    if (outermost) *outermost = std::move(symbol);
  }
  return frames;
}

}  // namespace coretap
