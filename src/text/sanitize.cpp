#include "coretap/sanitize.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace coretap {

namespace {

struct Decoded {
  std::uint32_t code = 0;
  int length = 0;  ///< 0: not UTF-8
};

Decoded decode(std::string_view s) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  auto first = byte(0);
  if (first < 0x80) return {first, 1};
  int length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (first >= 0xf5 || !length || s.size() < static_cast<std::size_t>(length)) return {};
  std::uint32_t code = first & (0xff >> (length + 1));
  for (int i = 1; i < length; i++) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return overlong || surrogate || code > 0x10ffff ? Decoded{} : Decoded{code, length};
}

/// Moves the cursor, reverses the line or hides text: names must not do that to a terminal.
bool dangerous(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         c == 0xad || c == 0x180e || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

// A lambda, which calls of rewrite() inline: it looks at each character of each line.
constexpr auto is_ascii = [](char c) { return c >= 0x20 && c < 0x7f; };

/// Appends runs of plain characters, usually the whole text. Calls `other` for each other
/// character: its code, and its bytes, or one byte that is not UTF-8 and no code (`valid` is
/// false).
template <class Plain, class Other>
void rewrite(std::string& out, std::string_view text, Plain is_plain, Other other) {
  while (true) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) plain++;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    auto [code, length] = decode(text);
    auto bytes = text.substr(0, length ? length : 1);
    other(length != 0, code, bytes);
    text.remove_prefix(bytes.size());
  }
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  append_printable(out, text);
  return out;
}

void append_printable(std::string& out, std::string_view text) {
  rewrite(out, text, is_ascii, [&](bool valid, std::uint32_t code, std::string_view bytes) {
    if (!valid || (dangerous(code) && code < 0x80))
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    else if (dangerous(code))
      out += fmt::format("\\u{{{:x}}}", code);
    else
      out += bytes;
  });
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  rewrite(out, text, is_ascii, [&](bool valid, std::uint32_t, std::string_view bytes) {
    out += valid ? bytes : kReplacement;
  });
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  auto is_plain = [](char c) { return is_ascii(c) && c != '"' && c != '\\'; };
  rewrite(out, text, is_plain, [&](bool valid, std::uint32_t code, std::string_view bytes) {
    if (!valid)
      out += kReplacement;
    else if (code == '"' || code == '\\')
      out.append({'\\', bytes[0]});
    else if (dangerous(code) && code > 0xffff)  // a surrogate pair, as in JSON
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                         0xdc00 + (code & 0x3ff));
    else if (dangerous(code))
      out += fmt::format("\\u{:04x}", code);
    else
      out += bytes;
  });
  return out + '"';
}

std::string folded_word(std::string_view text) {
  auto out = printable(text);
  for (auto& c : out)
    if (c == ';') c = ':';
  return out;
}

std::string xml_text(std::string_view text) {
  static constexpr std::pair<char, std::string_view> kMarkup[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  auto plain = printable(text);
  std::string out;
  out.reserve(plain.size());
  for (std::size_t i = 0; i < plain.size(); i++) {
    // U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML.
    if (plain.compare(i, 2, "\xef\xbf") == 0 && static_cast<unsigned char>(plain[i + 2]) >= 0xbe) {
      out += kReplacement;
      i += 2;
      continue;
    }
    auto* markup = std::ranges::find(kMarkup, plain[i], &std::pair<char, std::string_view>::first);
    if (markup == std::end(kMarkup))
      out += plain[i];
    else
      out += markup->second;
  }
  return out;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) text.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return text;
}

std::string csv_field(std::string_view text) {
  auto out = printable(text);
  if (out.find_first_of(",\"") == std::string::npos) return out;
  std::string quoted = "\"";
  for (char c : out) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace coretap
