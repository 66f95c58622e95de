// Makes untrusted text (command names, paths, symbols) safe for a terminal, a script or a file.
#pragma once
#include <string>
#include <string_view>

namespace coretap {

/// For terminals and pipes: control characters, escape sequences, direction marks and bytes that
/// are not UTF-8 become \xNN (or \u{NNNN}).
std::string printable(std::string_view text);
void append_printable(std::string& out, std::string_view text);

/// Valid UTF-8 for JSON: other bytes become U+FFFD.
std::string valid_utf8(std::string_view text);

/// A JSON string with its quotes: valid UTF-8 as above; characters that printable() escapes become
/// \uNNNN, which has the same meaning. Terminals interpret some of them as commands: U+009B is ESC
/// [.
std::string json_string(std::string_view text);

/// A frame or name in folded stacks: printable, without ';' which separates frames.
std::string folded_word(std::string_view text);

/// Text or an attribute's value in XML: printable, without markup or characters that XML 1.0
/// forbids.
std::string xml_text(std::string_view text);

/// Two digits for each byte.
std::string hexadecimal(std::string_view bytes);

/// One CSV field (RFC 4180), printable.
std::string csv_field(std::string_view text);

/// For YAML, SQL and command lines: puts a backslash before each quote and each backslash.
inline std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote;
}

}  // namespace coretap
