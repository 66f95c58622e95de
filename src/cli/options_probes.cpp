// Which user functions are probed.
#include "cli/option_parts.hpp"

namespace coretap::shared {

Option library(char letter, std::string_view alias) {
  auto o = same_everywhere(value(
      letter, "library", "PATH", "the library or program to probe, instead of those found",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--library: needs a path");
        c.library = text;
        return {};
      },
      Complete::file));
  o.alias = alias;
  return o;
}

Option symbols_prefix(char letter) {
  return same_everywhere(value(letter, "symbols-prefix", "PREFIX",
                               "what the names of the functions to probe begin with, such as je_",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 c.symbols_prefix = text;
                                 return {};
                               }));
}

}  // namespace coretap::shared
