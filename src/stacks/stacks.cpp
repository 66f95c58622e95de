#include "stacks/stacks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "symbols/recalled_symbol.hpp"

namespace coretap {

namespace {

constexpr char kSignalHandler[] = "<signal handler>";

/// Functions of coretap's program, and those through which the kernel calls it: not of interest.
bool is_tracing(std::string_view name) {
  for (std::string_view own : {"bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_",
                               "bpf_trampoline_", "bpf_get_stack", "trace_call_bpf"})
    if (name.starts_with(own)) return true;
  return false;
}

/// In the format of bcc's tools; only the last component of a path.
std::string place(const Symbol& symbol) {
  auto module = symbol.module.substr(symbol.module.rfind('/') + 1);
  if (!module.empty() && module.front() == '[') module = module.substr(1, module.size() - 2);
  auto text = symbol.known()   ? fmt::format("{}+{:#x}", symbol.name, symbol.offset)
              : module.empty() ? std::string("[unknown]")
                               : fmt::format("[unknown]+{:#x}", symbol.module_offset);
  return module.empty() ? text : fmt::format("{} [{}]", text, module);
}

/// The names of functions that a compiler inlined into that of this symbol, the innermost first,
/// taken off its name: Java agents write "outer->inner" into the map of compiled code.
std::vector<std::string> take_inlined(Symbol& symbol) {
  constexpr std::string_view kArrow = "->";
  std::vector<std::string> names;
  if (!symbol.compiled) return names;
  for (;;) {
    auto at = symbol.name.rfind(kArrow);
    if (at == std::string::npos || at == 0 || at + kArrow.size() == symbol.name.size() ||
        std::string_view(symbol.name).substr(0, at).ends_with("operator"))
      return names;
    names.push_back(symbol.name.substr(at + kArrow.size()));
    symbol.name.resize(at);
  }
}

}  // namespace

UserSymbols& Stacks::user_symbols() {
  if (!user_) user_ = std::make_unique<UserSymbols>();
  return *user_;
}

std::string Stacks::word(const Symbol& symbol, bool user, std::uint64_t address) const {
  if (style_.addresses)
    return fmt::format("{:016x} {}", user && symbol.file ? symbol.module_offset : address,
                       place(symbol));
  if (style_.places) return place(symbol);
  if (!symbol.known()) {
    if (style_.modules && !symbol.module.empty())
      return fmt::format("[unknown] ({}+{:#x})", symbol.module, symbol.module_offset);
    return "[unknown]";
  }
  auto text = symbol.name;
  if (style_.offsets) text += fmt::format("+{:#x}", symbol.offset);
  if (user && style_.modules && !symbol.module.empty()) text += fmt::format(" ({})", symbol.module);
  return text;
}

Frames Stacks::kernel(const stack& s, std::vector<FramePlace>* places) {
  Frames frames;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(s.depth, STACK_DEPTH); i++) {
    auto symbol = kernel_->find(s.ip[i]);
    if (frames.empty() && is_tracing(symbol.name)) continue;
    frames.push_back(word(symbol, false, s.ip[i]));
    if (places)
      places->push_back({.function = std::move(symbol.name), .object = std::move(symbol.module)});
  }
  return frames;
}

std::optional<Error> Stacks::take_kernel_failure() {
  if (!kernel_ || std::exchange(kernel_failure_taken_, true)) return {};
  auto loaded = kernel_->load();
  return loaded ? std::nullopt : std::optional(loaded.error());
}

Symbol Stacks::user_symbol(pid_t tgid, const stack& s, std::uint32_t frame,
                           const symbols::NumberedFiles* files) {
  const auto ip = s.ip[frame];
  const bool exact = frame == 0 || (ip & STACK_EXACT);
  auto live = [&] {
    return files && (ip & STACK_IN_FILE)
               ? user_symbols().find_in_file(*files, ip, tgid, exact)
               : user_symbols().find(tgid, ip & ~STACK_EXACT, exact, s.image);
  };
  if (!recall) return live();
  const bool any_process = ip & STACK_IN_FILE;
  return symbols::recalled(
      Ask::user_symbol,
      {any_process ? 0 : static_cast<std::uint64_t>(tgid), any_process ? 0 : s.image, ip, exact},
      live);
}

Frames Stacks::user(pid_t tgid, const stack& s, const symbols::NumberedFiles* files,
                    Symbol* outermost, std::vector<FramePlace>* places) {
  Frames frames;
  // Only the leaf, and a frame that a signal interrupted, has an exact address; the others have
  // return addresses.
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(s.depth, STACK_DEPTH); i++) {
    bool interrupted = s.ip[i] & STACK_EXACT;
    if (interrupted && !frames.empty()) {
      frames.back() = kSignalHandler;
      if (places) places->back().function = kSignalHandler, places->back().linkage_name.clear();
    }
    auto symbol = user_symbol(tgid, s, i, files);
    if (!style_.addresses && !style_.places)
      for (auto& name : take_inlined(symbol)) {
        frames.push_back(name);
        if (places)
          places->push_back({.function = std::move(name),
                             .object = symbol.module,
                             .compiled = true,
                             .inlined = true});
      }
    frames.push_back(word(symbol, true, s.ip[i] & ~STACK_EXACT));
    if (places)
      places->push_back({symbol.name, symbol.linkage_name, symbol.file, symbol.file_offset,
                         symbol.module, symbol.compiled});
    if (outermost) *outermost = std::move(symbol);
  }
  return frames;
}

}  // namespace coretap
