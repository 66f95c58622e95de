#include "text/sanitize.hpp"

#include <rapidjson/memorystream.h>

#include <random>

#include "expect.hpp"

namespace coretap {
namespace {

// By RapidJSON's decoder, so that the tested one is not judged by itself.
bool well_formed(std::string_view s, std::vector<unsigned>* codes = nullptr) {
  rapidjson::MemoryStream in(s.data(), s.size());
  while (in.Tell() < s.size()) {
    unsigned code = 0;
    if (!rapidjson::UTF8<>::Decode(in, &code)) return false;
    if (codes) codes->push_back(code);
  }
  return true;
}

std::string utf8(std::uint32_t c) {
  rapidjson::StringBuffer text;
  rapidjson::UTF8<>::Encode(text, c);
  return {text.GetString(), text.GetSize()};
}

TEST(Sanitize, OrdinaryTextStays) {
  for (auto text : {""sv, "nginx"sv, "kworker/u16:2-events"sv, "a b\\c"sv, "~!@#$%^&*()"sv,
                    "\xc3\xa9t\xc3\xa9"sv, "\xe6\x97\xa5\xe6\x9c\xac"sv, "\xf0\x9f\x90\xa7"sv,
                    "\xef\xbf\xbd"sv}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(Sanitize, ControlCharacters) {
  for (auto& [text, shown] :
       {std::pair{"\x1b[2J"sv, "\\x1b[2J"},
        {"\x1b]0;title\x07"sv, "\\x1b]0;title\\x07"},
        {"a\r\n\tb\x7f"sv, "a\\x0d\\x0a\\x09b\\x7f"},
        {"a\0b"sv, "a\\x00b"},
        // C1: an escape sequence's beginning for terminals in 8-bit mode, encoded or not.
        {"\x9b"
         "31m"sv,
         "\\x9b31m"},
        {"\xc2\x9b"
         "31m"sv,
         "\\u{9b}31m"},
        {"\xc2\x80\xc2\x9f\xc2\xa0"sv, "\\u{80}\\u{9f}\xc2\xa0"}})
    EXPECT_EQ(printable(text), shown);
}

// Each of their bytes is shown, and what follows is not eaten.
TEST(Sanitize, NotUtf8) {
  for (std::string text : {"\xff\xfe", "\x80", "\xc0\x9b",
                           "\xc1\xbf",  // overlong ESC-like, and DEL
                                        // Overlong ones of three bytes, and of four; the last ones.
                           "\xe0\x80\x9b", "\xe0\x9f\xbf", "\xf0\x80\x80\x9b", "\xf0\x8f\xbf\xbf",
                           // Surrogates, and beyond U+10FFFF.
                           "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                           "\xf8\x88\x80\x80\x80",
                           // Cut short, by the end or by another character.
                           "\xc3", "\xe2\x82", "\xf0\x9f\x90", "\xc3(", "\xe2\x82(", "\xe2\x1b[2J",
                           "\xf0\x9f\x90\x1b"}) {
    std::string shown;
    for (unsigned char c : text)
      shown += c > 0x7f || c == 0x1b ? fmt::format("\\x{:02x}", c)
                                     : std::string(1, static_cast<char>(c));
    EXPECT_EQ(printable(text), shown);
    EXPECT_FALSE(well_formed(text)) << shown;
  }
}

TEST(Sanitize, DirectionAndInvisibleMarks) {
  for (std::uint32_t c : {0x61cu, 0x200bu, 0x200du, 0x200eu, 0x200fu, 0x2028u, 0x2029u, 0x202au,
                          0x202eu, 0x2060u, 0x2066u, 0x2069u, 0xfeffu, 0xe0001u, 0xe007fu}) {
    auto shown = printable("a" + utf8(c) + "b");
    EXPECT_TRUE(shown.starts_with("a\\u{") && shown.ends_with("}b")) << shown;
  }
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u{202e}");
  // Annotations that hide text between them.
  for (std::uint32_t c : {0xfff9u, 0xfffau, 0xfffbu})
    EXPECT_TRUE(printable(utf8(c)).starts_with("\\u{")) << c;
}

TEST(Sanitize, EveryCharacter) {
  for (std::uint32_t c = 0; c <= 0x10ffff; c++) {
    if (c == 0xd800) c = 0xe000;
    auto text = utf8(c);
    ASSERT_EQ(valid_utf8(text), text) << c;
    auto shown = printable(text);
    ASSERT_TRUE(shown == text || shown.starts_with("\\u{") || shown.starts_with("\\x")) << c;
  }
}

TEST(Sanitize, ValidUtf8ReplacesEachBadByte) {
  EXPECT_EQ(valid_utf8("a\xff\xfe"
                       "b"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ(valid_utf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(valid_utf8("\x1b\0"sv), "\x1b\0"sv) << "JSON has escapes of its own";
}

/// Bytes as an attacker would choose them: random ones and pieces of sequences.
std::string hostile(std::mt19937& random) {
  static const Words pieces = {
      "\x1b[", "\xc2", "\x9b", "\xe2\x80", "\xae", "\xed\xa0", "\xf0\x9f", "\xf4\x8f\xbf",
      "\xbf",  ";",    ",",    "\"",       "\n",   "\r",       "a",        std::string(1, '\0')};
  std::string text;
  auto n = random() % 24;
  for (unsigned i = 0; i < n; i++) {
    if (random() % 2)
      text += static_cast<char>(random());
    else
      text += pieces[random() % pieces.size()];
  }
  return text;
}

void expect_harmless(const std::string& shown, const std::string& text) {
  std::vector<unsigned> codes;
  ASSERT_TRUE(well_formed(shown, &codes)) << testing::PrintToString(text);
  for (auto c : codes)
    ASSERT_FALSE(c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
                 (c >= 0x2066 && c <= 0x2069))
        << testing::PrintToString(text);
}

TEST(Sanitize, RandomBytes) {
  std::mt19937 random(20240511);
  for (int i = 0; i < 50000; i++) {
    auto text = hostile(random);
    ASSERT_TRUE(well_formed(valid_utf8(text))) << testing::PrintToString(text);
    if (well_formed(text)) {
      ASSERT_EQ(valid_utf8(text), text);
    }
    expect_harmless(printable(text), text);
    expect_harmless(folded_word(text), text);
    ASSERT_EQ(folded_word(text).find(';'), std::string::npos);
    expect_harmless(csv_field(text), text);
    if (HasFatalFailure()) return;
  }
}

TEST(Sanitize, FoldedWords) {
  EXPECT_EQ(folded_word("a;b"), "a:b");
  EXPECT_EQ(folded_word("operator new(unsigned long)"), "operator new(unsigned long)");
  EXPECT_EQ(folded_word("a\nb 5"), "a\\x0ab 5");
}

/// What a reader of XML makes of it; nothing but text may be there.
std::string from_xml(const std::string& text) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
  EXPECT_EQ(text.find_first_of("<>\"'"), text.npos) << text;
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    char c = text[i];
    if (c == '&') {
      length = 0;
      for (auto& [entity, meaning] : kEntities)
        if (text.compare(i, entity.size(), entity) == 0) c = meaning, length = entity.size();
      EXPECT_NE(length, 0u) << text;
      if (!length) return {};
    }
    plain += c;
    i += length;
  }
  return plain;
}

TEST(Sanitize, XmlText) {
  EXPECT_EQ(xml_text("operator<<(A&&, \"x\", 'y')"),
            "operator&lt;&lt;(A&amp;&amp;, &quot;x&quot;, &#39;y&#39;)");
  EXPECT_EQ(xml_text("]]>"), "]]&gt;");
  EXPECT_EQ(xml_text("a\x01\xff"), "a\\x01\\xff");
  // Valid UTF-8, but no characters of XML 1.0.
  EXPECT_EQ(xml_text("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"),
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  std::mt19937 random(9);
  for (int i = 0; i < 20000; i++) {
    auto text = hostile(random);
    if (text.find("\xef\xbf") != text.npos) continue;
    ASSERT_EQ(from_xml(xml_text(text)), printable(text));
  }
}

/// Reads a CSV field back (RFC 4180); nothing but the field may be there.
std::string unquote(const std::string& field) {
  if (field.empty() || field[0] != '"') {
    EXPECT_EQ(field.find_first_of(",\"\r\n"), std::string::npos) << field;
    return field;
  }
  EXPECT_TRUE(field.size() >= 2 && field.back() == '"') << field;
  std::string text;
  for (std::size_t i = 1; i + 1 < field.size(); i++) {
    if (field[i] == '"') {
      EXPECT_EQ(field[i + 1], '"') << field;
      i++;
    }
    text += field[i];
  }
  return text;
}

TEST(Sanitize, CsvFields) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("\""), "\"\"\"\"");
  EXPECT_EQ(csv_field("a\nb"), "a\\x0ab");
  std::mt19937 random(7);
  for (int i = 0; i < 20000; i++) {
    auto text = hostile(random);
    ASSERT_EQ(unquote(csv_field(text)), printable(text));
  }
}

}  // namespace
}  // namespace coretap
