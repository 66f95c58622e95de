#include "coretap/sanitize.hpp"

#include <rapidjson/document.h>

#include <algorithm>

#include "coretap/json.hpp"
#include "fuzz.hpp"

using namespace coretap;

namespace {

/// The text as an XML reader returns it; no markup may be in it.
std::string from_xml(std::string_view xml) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
  MUST(xml.find_first_of("<>\"'") == xml.npos);
  std::string plain;
  while (!xml.empty()) {
    std::pair<std::string_view, char> next{xml.substr(0, 1), xml.front()};
    if (xml.front() == '&') {
      const auto* entity =
          std::ranges::find_if(kEntities, [&](auto& one) { return xml.starts_with(one.first); });
      MUST(entity != std::end(kEntities));
      next = *entity;
    }
    plain += next.second;
    xml.remove_prefix(next.first.size());
  }
  return plain;
}

/// A field of CSV read back (RFC 4180).
std::string unquoted(std::string_view field) {
  if (!field.starts_with('"')) {
    MUST(field.find_first_of(",\"\r\n") == field.npos);
    return std::string(field);
  }
  MUST(field.size() >= 2 && field.ends_with('"'));
  std::string text;
  for (std::size_t i = 1; i + 1 < field.size(); i++) {
    if (field[i] == '"') MUST(field[++i] == '"' && i + 1 < field.size());
    text += field[i];
  }
  return text;
}

}  // namespace

FUZZ(sanitize, bytes) {
  const auto shown = printable(bytes);
  MUST(fuzz::is_plain(shown));
  MUST(shown.size() >= bytes.size() || shown.size() * 4 >= bytes.size());
  MUST(printable(shown) == shown);  // plain text is not changed

  const auto valid = valid_utf8(bytes);
  MUST(valid_utf8(valid) == valid);
  JsonLine line;
  const std::string json(line.text("text", bytes).finish());
  rapidjson::Document read;
  read.Parse<rapidjson::kParseValidateEncodingFlag>(json.data(), json.size());
  MUST(!read.HasParseError() && fuzz::is_plain(json));
  MUST((std::string_view(read["text"].GetString(), read["text"].GetStringLength()) == valid));

  const auto word = folded_word(bytes);
  MUST(fuzz::is_plain(word) && word.find(';') == word.npos);

  const auto xml = xml_text(bytes), field = csv_field(bytes);
  MUST(fuzz::is_plain(xml) && fuzz::is_plain(field));
  const auto unescaped = from_xml(xml);
  if (bytes.find("\xef\xbf") == bytes.npos) MUST(unescaped == shown);  // XML has no U+FFFE, U+FFFF
  MUST(unquoted(field) == shown);
}
