#include "cli/words.hpp"

#include <fmt/format.h>

namespace coretap {

Result<std::vector<std::string>> command_words(std::string_view line) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); i++) {
    char c = line[i];
    if (!quote && (c == ' ' || c == '\t' || c == '\n')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote ? c == quote : c == '\'' || c == '"') {
      quote = quote ? 0 : c;
    } else if (c == '\\' && quote != '\'') {
      if (++i == line.size()) return usage("a backslash ends the command line");
      words.back() += line[i];
    } else {
      words.back() += c;
    }
  }
  if (quote) return usage(fmt::format("a {} is not closed", quote));
  return words;
}

}  // namespace coretap
