// Quoted text for YAML, SQL and command lines.
#pragma once
#include <string>
#include <string_view>

namespace coretap {

/// Puts a backslash before each quote and each backslash.
inline std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote;
}

}  // namespace coretap
