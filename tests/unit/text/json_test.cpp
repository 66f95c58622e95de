#include "coretap/json.hpp"

#include "coretap/schema.hpp"
#include "expect.hpp"
#include "program/session.hpp"
#include "text/value.hpp"

namespace coretap {
namespace {

/// {"t": TEXT}, and the text that a parser returns.
std::pair<std::string, std::string> round_trip(std::string_view text) {
  JsonLine line;
  line.text("t", text);
  std::string out(line.finish());
  auto d = parsed_json(out);
  return {out, {d["t"].GetString(), d["t"].GetStringLength()}};
}

TEST(Json, OneObjectOnOneLine) {
  JsonLine line;
  line.text("type", "x").number("n", 5).boolean("b", true).key("none").null();
  line.key("list").begin_array().number(1).integer(-2).real(0.5).text("t").end_array();
  line.key("inner").begin_object().text("k", "v").end_object();
  EXPECT_EQ(line.finish(),
            R"({"type":"x","n":5,"b":true,"none":null,"list":[1,-2,0.5,"t"],"inner":{"k":"v"}})");
  JsonLine empty;
  EXPECT_EQ(empty.finish(), "{}");
}

TEST(Json, ExtremeNumbers) {
  JsonLine line;
  line.number("most", UINT64_MAX).key("least").integer(INT64_MIN).key("real").real(1e-300);
  EXPECT_EQ(line.finish(),
            R"({"most":18446744073709551615,"least":-9223372036854775808,"real":1e-300})");
}

// JSON has no such numbers: the line must still be valid.
TEST(Json, NumbersThatAreNone) {
  for (double none : {std::nan(""), std::numeric_limits<double>::infinity(),
                      -std::numeric_limits<double>::infinity()}) {
    JsonLine line;
    line.key("a").real(none).number("b", 1);
    auto d = parsed_json(line.finish());
    EXPECT_TRUE(d["a"].IsNull());
    EXPECT_EQ(d["b"].GetUint64(), 1u);
  }
}

TEST(Json, TextIsEscapedAndKept) {
  auto text = "a\"b\\c/\n\r\t\x1b[2J\0\x7f\xc3\xa9\xe2\x80\xae\xf0\x9f\x90\xa7"sv;
  auto [out, read] = round_trip(text);
  for (char c : out) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << out;
  EXPECT_EQ(read, text);
}

// Valid JSON that would control a terminal: the parsed text is the same.
TEST(Json, NothingThatATerminalObeys) {
  auto text = "\xc2\x9b[2J\xc2\x85\x7f\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81"sv;
  auto [out, read] = round_trip(text);
  EXPECT_EQ(out, R"({"t":"\u009b[2J\u0085\u007f\u202e\u2028\ufeff\udb40\udc41"})");
  EXPECT_EQ(read, text);
}

std::string value(const Format& format, const Value& v, const Names& names = {}) {
  JsonLine line;
  line.key("v");
  json_value(line, {"v", "V", format, ""}, v, names);
  std::string text(line.finish());
  return text.substr(5, text.size() - 6);  // {"v":...}
}
std::string csv(const Format& format, const Value& v, const Names& names = {}) {
  return csv_value({"v", "V", format, ""}, v, names);
}

// They are raw: the unit is in the key.
TEST(Values, RawNumbersAndNames) {
  struct {
    Format format;
    Value value;
    std::string_view json, csv;
  } const cases[] = {
      {as::milliseconds, std::uint64_t{1'234'567}, "1234567", "1234567"},
      {as::number, std::int64_t{-1}, "-1", "-1"},
      {as::percent, 0.5, "0.5", "0.5"},
      {as::thousandths, std::int64_t{-500}, "-0.5", "-0.500"},
      {as::gfp, std::uint64_t{0xdc0}, R"("GFP_KERNEL|__GFP_ZERO")", "GFP_KERNEL|__GFP_ZERO"},
      {as::disk, std::uint64_t{0xffffffff}, R"("4095:1048575")", "4095:1048575"},
      {as::number, Value{}, "null", ""},
      {as::comm, std::string("a\"b"), R"("a\"b")", "\"a\"\"b\""},
      {as::comm, std::string("a,\"b\n"), R"("a,\"b\u000a")", "\"a,\"\"b\\x0a\""},
      {as::text, true, "true", "true"},
      {as::text, false, "false", "false"},
  };
  for (auto& c : cases) {
    EXPECT_EQ(value(c.format, c.value), c.json);
    EXPECT_EQ(csv(c.format, c.value), c.csv);
  }
}

TEST(JsonValue, ListsOfTextAreArrays) {
  TextList words{{"sh", "-c", "", "a \"b\"\x1b"}, "sh -c  a \"b\"\x1b ..."};
  EXPECT_EQ(value(as::rest, words), R"(["sh","-c","","a \"b\"\u001b"])");
  EXPECT_EQ(value(as::rest, TextList{}), "[]");
  Field field{"args", "ARGS", as::rest, ""};
  EXPECT_EQ(csv_value(field, words, Names()), "\"sh -c  a \"\"b\"\"\\x1b ...\"");
  EXPECT_EQ(show(as::rest, words, Names()), "sh -c  a \"b\"\\x1b ...");
  field.read = [](const void*, const FieldContext&) -> Value { return TextList(); };
  EXPECT_EQ(key(field, 8).type, "array of strings");
  EXPECT_EQ(csv_key(field, 8).type, "string");
}

TEST(Values, HiddenAddresses) {
  Names names;
  names.why_hidden = [] { return std::optional<Error>(Error{}); };
  Value kernel = std::uint64_t{0xffff888012345678};
  EXPECT_EQ(value(as::pointer, kernel, names), "null");
  EXPECT_EQ(csv(as::pointer, kernel, names), "");
  EXPECT_EQ(csv(as::pointer, std::uint64_t{4096}, names), "4096");
}

}  // namespace
}  // namespace coretap
