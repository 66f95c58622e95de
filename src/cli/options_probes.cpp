// Options that select the probed user functions.
#include <fmt/format.h>

#include "coretap/option_parts.hpp"

namespace coretap::shared {

Option library(char letter, std::string_view alias) {
  return same_everywhere(value(
                             letter, "library", "PATH",
                             "the library or program to probe, instead of those found",
                             [](Config& c, std::string_view text) -> Result<void> {
                               if (text.empty()) return usage("--library: needs a path");
                               c.probes.library = text;
                               return {};
                             },
                             Complete::file)
                             .also(alias));
}

Option symbols_prefix(char letter) {
  return same_everywhere(value(letter, "symbols-prefix", "PREFIX",
                               "prefix of the allocator's function names, such as je_",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 c.probes.prefix = text;
                                 return {};
                               }));
}

Positional target_arguments(std::string_view otherwise, std::string_view metavar,
                            std::string_view doc) {
  constexpr std::string_view kDoc =
      "what to trace: FUNCTION or MODULE:FUNCTION of the kernel, LIBRARY:FUNCTION of a "
      "64-bit program or library, t:CATEGORY:EVENT, u:LIBRARY:PROBE; * matches any text";
  return {.metavar = metavar.empty() ? "PATTERN" : metavar,
          .doc = fmt::format("{}{}", doc.empty() ? kDoc : doc,
                             otherwise.empty() ? "" : fmt::format("; without one {}", otherwise)),
          .repeat = otherwise.empty() ? Positional::at_least_one : Positional::any_number,
          .apply = [](Config& c, std::string_view text) -> Result<void> {
            c.probes.targets.emplace_back(text);
            return {};
          },
          .complete = Complete::function,
          .otherwise = std::string(otherwise)};
}

Option regular_expressions(char letter) {
  return same_everywhere(
      flag(letter, "regexp", "patterns are regular expressions (POSIX extended)"));
}

Option max_probes() {
  return limit(0, "max-probes", "N",
               "maximum places to attach one by one (default: 1000); more take long", 1 << 20,
               [](Config& c) { return &c.probes.most; });
}

Option return_trampoline() {
  return same_everywhere(
      flag(0, "return-trampoline",
           "probe returns of user functions by the kernel's return probe where return instructions "
           "cannot be found; programs that unwind through such a function break"));
}

Option debug(char letter) {
  return same_everywhere(flag(letter, "debug", "also print each place that is traced"));
}

}  // namespace coretap::shared
