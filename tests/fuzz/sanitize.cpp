#include "text/sanitize.hpp"

#include <algorithm>

#include "fuzz.hpp"
#include "text/json.hpp"

using namespace coretap;

FUZZ(sanitize, bytes) {
  const auto shown = printable(bytes);
  MUST(fuzz::is_plain(shown));
  MUST(shown.size() >= bytes.size() || shown.size() * 4 >= bytes.size());
  MUST(printable(shown) == shown);  // what is plain stays

  const auto valid = valid_utf8(bytes);
  MUST(valid_utf8(valid) == valid);
  JsonLine line;
  line.text("text", bytes).key(valid).null();
  MUST(fuzz::is_json(line.finish()));

  const auto word = folded_word(bytes);
  MUST(fuzz::is_plain(word) && word.find(';') == word.npos);

  const auto xml = xml_text(bytes);
  MUST(fuzz::is_plain(xml) && xml.find_first_of("<>\"'") == xml.npos);
  for (auto at = xml.find('&'); at != xml.npos; at = xml.find('&', at + 1))
    MUST(xml.find(';', at) - at <= 6);

  const auto field = csv_field(bytes);
  MUST(fuzz::is_plain(field));
  if (field.starts_with('"')) {
    MUST(field.size() >= 2 && field.ends_with('"'));
    MUST(std::ranges::count(field, '"') % 2 == 0);
  } else {
    MUST(field.find_first_of(",\"") == field.npos);
  }
}
