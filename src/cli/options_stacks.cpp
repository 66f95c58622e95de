// Options for unwinding, storing and printing stacks, and for the off-CPU waits that count.
#include <fmt/format.h>

#include "coretap/option_parts.hpp"

namespace coretap::shared {

Option stack_depth() {
  return same_everywhere(value(
      0, "perf-max-stack-depth", "FRAMES",
      "frames kept of each stack: of user stacks 512 at most, of kernel stacks 127 (default: the most)",
      [](Config& c, std::string_view text) -> Result<void> {
        auto n = take_number("--perf-max-stack-depth", text, 1, 512, parse_unsigned);
        if (!n) return n.error();
        c.stacks.depth = static_cast<std::uint32_t>(*n);
        return {};
      }));
}
Option stack_storage(char letter) {
  return limit(letter, "stack-storage-size", "STACKS",
               "maximum unique stacks (default: scaled to the machine's memory)", 1 << 24,
               [](Config& c) { return &c.stacks.most; });
}

Option folded() {
  return same_everywhere(flag('f', "folded", "one line per stack, for flame graphs"));
}
Option offset(char letter) {
  return same_everywhere(flag(letter, "offset", "print offsets within functions"));
}
Option address(char letter) {
  return same_everywhere(
      flag(letter, "address",
           "print stacks with addresses, offsets and modules: addresses in memory for the kernel, "
           "in files as objdump and addr2line show them"));
}

namespace {

/// An output file written at the end; stacks are then printed only on request.
Option file_at_end(std::string_view name, std::string_view doc,
                   std::string Config::Files::*member) {
  return same_everywhere(value(
      0, name, "FILE", doc,
      [name, member](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage(fmt::format("--{}: needs a file's name, or -", name));
        c.files.*member = text;
        return {};
      },
      Complete::file));
}

}  // namespace

Option svg() {
  return file_at_end(
      "svg",
      "write an interactive flame graph to this file (-: standard output) at the end; stacks are "
      "then printed only with --folded, --json or --csv",
      &Config::Files::svg);
}

Option color_by() {
  return belonging_to("svg",
                      {same_everywhere(
                          choice(0, "color-by", "KIND",
                                 "what the colours of --svg tell: code (default), object or name",
                                 {{"code", 0, "kernel, program, library, JIT-compiled, inlined"},
                                  {"object", 0, "the file: a colour for each of the largest"},
                                  {"name", 0, "the function, with the same colour in all graphs"}},
                                 [](Config&, std::uint64_t) {})
                              .also("colour-by"))})
      .front();
}

Option annotations(char letter) {
  return same_everywhere(flag(letter, "annotations",
                              "mark frames as FlameGraph does: _[k] kernel, _[j] JIT-compiled, "
                              "_[i] inlined"));
}

Option pprof() {
  return file_at_end(
      "pprof",
      "write a profile for pprof and programs that read its format, gzip-compressed, to this "
      "file (-: standard output) at the end; stacks are then printed only with --folded, --json "
      "or --csv",
      &Config::Files::pprof);
}

Option unwind() {
  using Stacks = Config::Stacks;
  return same_everywhere(choice(
      0, "unwind", "HOW",
      "how user stacks are walked: auto (default), with the unwind tables of programs and "
      "libraries, and with frame pointers where there are none; fp, with frame pointers "
      "only; off, only the current instruction address",
      {{"auto", Stacks::automatic, "unwind tables, and frame pointers without them"},
       {"fp", Stacks::frame_pointers, "frame pointers only"},
       {"off", Stacks::no_walk, "only the current instruction"}},
      [](Config& c, std::uint64_t how) { c.stacks.unwind = static_cast<Stacks::Unwind>(how); }));
}

std::vector<Option> code() {
  using Stacks = Config::Stacks;
  auto only = [](std::string_view name, std::string_view doc, Stacks::Code code) {
    auto option = same_everywhere(flag(0, name, doc));
    option.apply = [code](Config& c, std::string_view) -> Result<void> {
      c.stacks.code = code;
      return {};
    };
    return option;
  };
  return {
      only("native-only", "no frames of interpreted code (Python, Java, PHP, Ruby, ...)",
           Stacks::native),
      only("runtime-only",
           "of user stacks with interpreted code (Python, Java, PHP, Ruby, ...), only its frames",
           Stacks::interpreted)};
}

Option unwind_memory() {
  constexpr std::uint64_t kLeast = 4096;
  auto option = limit(0, "unwind-memory", "SIZE",
                      "memory for unwind tables of running programs and libraries (default: 64M)",
                      1 << 30, [](Config& c) { return &c.stacks.unwind_memory; });
  option.apply = [take = option.apply](Config& c, std::string_view text) -> Result<void> {
    if (auto r = take(c, text); !r) return r;
    if (c.stacks.unwind_memory >= kLeast) return {};
    return usage(
        fmt::format("--unwind-memory: {} bytes are too few for tables", c.stacks.unwind_memory),
        "give the unit, too: 256M");
  };
  return option;
}

/// Not same_everywhere(): ttysnoop has an option of this name.
Option lines() {
  return flag(0, "lines", "source lines and inlined functions, from debug information");
}

std::vector<Option> kernel_stacks(char annotations_letter) {
  return {folded(),       annotations(annotations_letter),
          svg(),          color_by(),
          pprof(),        lines(),
          offset(),       stack_depth(),
          stack_storage()};
}

std::vector<Option> one_stack_only() {
  return {same_everywhere(flag('U', "user-stacks-only", "no kernel stacks")),
          same_everywhere(flag('K', "kernel-stacks-only", "no user stacks"))};
}

std::vector<Option> stacks(char annotations_letter) {
  return joined(
      {one_stack_only(),
       {same_everywhere(flag('d', "delimited", "a delimiter between kernel and user stack"))},
       kernel_stacks(annotations_letter),
       {unwind(), unwind_memory()},
       code()});
}

std::vector<Option> stack_tables() {
  auto name = [](std::string_view option, std::string_view alias, std::string_view doc) {
    return same_everywhere(
        free_text(0, option, "FUNCTION", doc, Complete::nothing, "a function's name").also(alias));
  };
  return {same_everywhere(choice(0, "functions", "SORT",
                                 "a table of functions, sorted by self (the default) or total",
                                 {{"self", 0, "by what was found in the function itself"},
                                  {"total", 1, "by that with what it calls"}},
                                 [](Config&, std::uint64_t) {})
                              .omitted_as("self")),
          same_everywhere(flag(0, "tree", "a call tree, the outermost frame first")),
          same_everywhere(flag(0, "inverted", "the innermost frame first")),
          name("callers-of", "callers", "only what calls this function, the nearest caller first"),
          name("callees-of", "callees", "only this function and what it calls"),
          same_everywhere(
              number(0, "least", "PERCENT",
                     "leave out functions and branches with less than this of all (default: 1)",
                     Range{0, 100}, {})),
          on_screen(),
          file_at_end(
              "dot", "write a call graph for Graphviz to this file (-: standard output) at the end",
              &Config::Files::dot)};
}

std::vector<std::pair<std::string_view, std::string_view>> stack_rules() {
  return {{"user-stacks-only", "kernel-stacks-only"},
          {"native-only", "runtime-only"},
          {"folded", "json"},
          {"folded", "csv"}};
}

std::vector<std::pair<std::string_view, std::string_view>> off_cpu_rules() {
  auto rules = stack_rules();
  rules.emplace_back("user-stacks-only", "reasons");
  return rules;
}

Option reasons() {
  return flag(0, "reasons",
              "what each wait was for, as its kernel stack shows, as the innermost frame");
}

Result<void> check_off_cpu(const Config& config) {
  if (config.number("min-block-time", 0) > config.number("max-block-time", UINT64_MAX))
    return usage("--min-block-time is above --max-block-time", "no wait can be both");
  return {};
}

}  // namespace coretap::shared
