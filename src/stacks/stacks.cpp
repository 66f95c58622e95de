#include "stacks/stacks.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "runtimes/runtimes.hpp"
#include "symbols/demangle.hpp"
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

/// Adds the line to the last frame.
void place_line(Frames& frames, std::vector<FramePlace>* places,
                const symbols::SourceFrame& source) {
  add_line(frames.back(), source);
  if (!places) return;
  places->back().source = source.file;
  places->back().line = source.line;
}

}  // namespace

bool add_parts(stack part, const std::function<bool(std::uint64_t key, stack& to)>& stored,
               std::vector<std::uint64_t>& frames) {
  for (int parts = 1;; parts++) {
    std::size_t depth = std::min<std::size_t>(part.depth & ~STACK_LINKED, STACK_DEPTH);
    const bool linked = (part.depth & STACK_LINKED) && depth;
    depth -= linked;
    frames.insert(frames.end(), part.ip, part.ip + depth);
    if (!linked) return true;
    const auto next = part.ip[depth];
    if (parts == STACK_PARTS || !stored(next, part)) return false;
  }
}

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

/// The functions that the compiler inlined into that of the symbol: all but the last of `found`.
void Stacks::add_inlined(Frames& frames, std::vector<FramePlace>* places, FrameLines::Found& found,
                         const Symbol& symbol) const {
  for (; found.size() > 1; found.erase(found.begin())) {
    auto& source = found.front();
    auto name = source.function.empty() ? "[unknown]" : symbols::demangle(source.function);
    if (places) {
      FramePlace place{.function = name, .file = symbol.file, .at = symbol.file_offset};
      if (name != source.function) place.linkage_name = source.function;
      place.object = symbol.module;
      place.inlined = true;
      place.source = source.file;
      place.line = source.line;
      places->push_back(std::move(place));
    }
    add_line(name, source);
    frames.push_back(std::move(name));
  }
}

void Stacks::add_interpreted(Frames& frames, std::vector<FramePlace>* places,
                             const Symbol& symbol) const {
  const auto add = [&](const symbols::SourceFrame& frame) {
    frames.push_back(frame.function);
    if (places)
      places->push_back({.function = frame.function,
                         .object = symbol.module,
                         .inlined = frame.inlined,
                         .interpreted = true});
    place_line(frames, places, frame);
    if (style_.modules) frames.back() += fmt::format(" ({})", symbol.module);
  };
  for (auto& frame : symbol.inlined) add(frame);
  add({.function = symbol.name, .file = symbol.source, .line = symbol.line});
}

Frames Stacks::kernel(const stack& s, std::vector<FramePlace>* places) {
  Frames frames;
  const std::span ips(s.ip, std::min<std::uint32_t>(s.depth, STACK_DEPTH));
  std::vector<FrameLines::Found> lines;
  if (lines_) {
    // All but the first are return addresses.
    std::vector<std::uint64_t> addresses(ips.begin(), ips.end());
    for (std::size_t i = 1; i < addresses.size(); i++) addresses[i]--;
    lines = lines_->kernel(addresses);
  }
  for (std::size_t i = 0; i < ips.size(); i++) {
    auto symbol = kernel_->find(ips[i]);
    if (frames.empty() && !(s.image & STACK_INTERRUPTED) && is_tracing(symbol.name)) continue;
    if (lines_) {
      symbol.file_offset = ips[i];  // identifies the place; never printed
      add_inlined(frames, places, lines[i], symbol);
    }
    frames.push_back(word(symbol, false, ips[i]));
    if (places)
      places->push_back({.function = std::move(symbol.name),
                         .at = symbol.file_offset,
                         .object = std::move(symbol.module)});
    if (lines_ && !lines[i].empty()) place_line(frames, places, lines[i].back());
  }
  return frames;
}

std::optional<Error> Stacks::take_kernel_failure() {
  if (!kernel_ || std::exchange(kernel_failure_taken_, true)) return {};
  auto loaded = kernel_->load();
  return loaded ? std::nullopt : std::optional(loaded.error());
}

namespace {

/// Without a name: code of the interpreter itself, which is not shown.
Symbol interpreted_symbol(std::uint64_t word, bool exact, const runtimes::CodeNames* codes) {
  auto live = [&] {
    auto frame = codes ? codes->find(word, exact) : runtimes::RuntimeFrame();
    const auto runtime = std::string(runtimes::name_of(runtimes::kind_of(word)));
    if (frame.function.empty()) frame.function = runtime;
    Symbol symbol{.name = frame.shown ? std::move(frame.function) : "",
                  .module = runtime,
                  .linkage_name = {},
                  .file = {}};
    symbol.interpreted = true;
    symbol.source = std::move(frame.file);
    symbol.line = frame.line;
    symbol.inlined = std::move(frame.inlined);
    return symbol;
  };
  // Only of compiled code, a leaf differs from a frame with the same word that has made a call.
  const bool leaf = exact && !(word & STACK_EXACT) && runtimes::kind_of(word) == RUNTIME_HOTSPOT;
  return recall ? symbols::recalled(Ask::user_symbol, {0, 0, word, leaf}, live) : live();
}

}  // namespace

Symbol Stacks::user_symbol(pid_t tgid, const UserStack& s, std::uint32_t frame,
                           const Numbered& numbered) {
  const auto ip = s.frames[frame];
  const bool exact = frame == 0 || (ip & STACK_EXACT);
  if (ip & STACK_RUNTIME) return interpreted_symbol(ip, exact, numbered.codes);
  const auto* files = numbered.files;
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

Frames Stacks::user(pid_t tgid, const UserStack& s, const Numbered& numbered, Symbol* outermost,
                    std::vector<FramePlace>* places) {
  Frames frames;
  // Only the leaf, and a frame that a signal interrupted, has an exact address; the others have
  // return addresses.
  const auto ips = s.frames;
  const auto is_exact = [&](std::size_t i) { return i == 0 || (ips[i] & STACK_EXACT); };
  const auto is_interpreted = [&](std::size_t i) { return (ips[i] & STACK_RUNTIME) != 0; };
  // The native frame that runs interpreted ones is the interpreter's loop, if it has one.
  const auto is_loop = [&](std::size_t i) {
    return i + 1 < ips.size() && is_interpreted(i + 1) && !is_interpreted(i) &&
           runtimes::has_loop(runtimes::kind_of(ips[i + 1]));
  };
  bool any_interpreted = false;
  for (std::size_t i = 0; i < ips.size(); i++) any_interpreted |= is_interpreted(i);
  std::vector<Symbol> symbols;
  for (std::uint32_t i = 0; i < ips.size(); i++)
    symbols.push_back(user_symbol(tgid, s, i, numbered));
  std::vector<FrameLines::Found> lines(symbols.size());
  if (lines_) {
    std::vector<FrameLines::Frame> all;
    for (std::size_t i = 0; i < symbols.size(); i++) all.push_back({&symbols[i], is_exact(i)});
    lines = lines_->user(tgid, all);
  }
  for (std::size_t i = 0; i < symbols.size(); i++) {
    auto& symbol = symbols[i];
    if (is_interpreted(i)) {
      if (symbol.known()) add_interpreted(frames, places, symbol);
      continue;
    }
    if (is_loop(i) || (any_interpreted && style_.interpreted_only)) continue;
    if ((ips[i] & STACK_EXACT) && !frames.empty()) {
      frames.back() = kSignalHandler;
      if (places) {
        auto& handler = places->back();
        handler.function = kSignalHandler;
        handler.linkage_name.clear();
        handler.source.clear();
        handler.line = 0;
      }
    }
    if (!style_.addresses && !style_.places)
      for (auto& name : take_inlined(symbol)) {
        frames.push_back(name);
        if (places)
          places->push_back({.function = std::move(name),
                             .object = symbol.module,
                             .compiled = true,
                             .inlined = true});
      }
    add_inlined(frames, places, lines[i], symbol);
    frames.push_back(word(symbol, true, ips[i] & ~STACK_EXACT));
    if (places)
      places->push_back({symbol.name, symbol.linkage_name, symbol.file, symbol.file_offset,
                         symbol.module, symbol.compiled});
    if (!lines[i].empty()) place_line(frames, places, lines[i].back());
  }
  if (outermost && !symbols.empty()) *outermost = std::move(symbols.back());
  return frames;
}

}  // namespace coretap
