#include "coretap/sanitize.hpp"

#include <rapidjson/memorystream.h>

#include "expect.hpp"

namespace coretap {
namespace {

// By RapidJSON's decoder, independent of the tested one.
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
        // C1: the start of an escape sequence for terminals in 8-bit mode, encoded or not.
        {"\x9b"
         "31m"sv,
         "\\x9b31m"},
        {"\xc2\x9b"
         "31m"sv,
         "\\u{9b}31m"},
        {"\xc2\x80\xc2\x9f\xc2\xa0"sv, "\\u{80}\\u{9f}\xc2\xa0"}})
    EXPECT_EQ(printable(text), shown);
}

// Each invalid byte is shown, and following text is kept.
TEST(Sanitize, NotUtf8) {
  for (std::string text : {"\xff\xfe", "\x80", "\xc0\x9b",
                           "\xc1\xbf",  // overlong ESC-like, and DEL
                                        // Overlong ones of three bytes, and of four; the last ones.
                           "\xe0\x80\x9b", "\xe0\x9f\xbf", "\xf0\x80\x80\x9b", "\xf0\x8f\xbf\xbf",
                           // Surrogates, and beyond U+10FFFF.
                           "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                           "\xf8\x88\x80\x80\x80",
                           // Truncated, by the end or by another character.
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

TEST(Sanitize, FoldedWords) {
  expect_each(folded_word, {"a;b => a:b", "a\nb 5 => a\\x0ab 5",
                            "operator new(unsigned long) => operator new(unsigned long)"});
}

TEST(Sanitize, XmlText) {
  EXPECT_EQ(xml_text("operator<<(A&&, \"x\", 'y')"),
            "operator&lt;&lt;(A&amp;&amp;, &quot;x&quot;, &#39;y&#39;)");
  EXPECT_EQ(xml_text("]]>"), "]]&gt;");
  EXPECT_EQ(xml_text("a\x01\xff"), "a\\x01\\xff");
  // Valid UTF-8, but not characters of XML 1.0.
  EXPECT_EQ(xml_text("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"),
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Sanitize, CsvFields) {
  expect_each(csv_field, {"plain => plain", " => ", "a,b => \"a,b\"", "\" => \"\"\"\"",
                          "say \"hi\" => \"say \"\"hi\"\"\"", "a\nb => a\\x0ab"});
}

}  // namespace
}  // namespace coretap
