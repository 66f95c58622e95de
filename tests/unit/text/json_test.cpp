#include "text/json.hpp"

#include <cmath>
#include <random>

#include "coretap/schema.hpp"
#include "expect.hpp"
#include "program/session.hpp"
#include "text/value.hpp"

namespace coretap {
namespace {

using namespace std::string_view_literals;

rapidjson::Document parse(std::string_view text) {
  rapidjson::Document d;
  d.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  EXPECT_FALSE(d.HasParseError()) << text;
  return d;
}

TEST(Json, OneObjectOnOneLine) {
  JsonLine line;
  line.text("type", "x").number("n", 5).boolean("b", true).key("none").null();
  line.key("list").begin_array().number(1).integer(-2).real(0.5).text("t").end_array();
  line.key("inner").begin_object().text("k", "v").end_object();
  EXPECT_EQ(line.finish(),
            R"({"type":"x","n":5,"b":true,"none":null,"list":[1,-2,0.5,"t"],"inner":{"k":"v"}})");
}

TEST(Json, Empty) {
  JsonLine line;
  EXPECT_EQ(line.finish(), "{}");
}

TEST(Json, ExtremeNumbers) {
  JsonLine line;
  line.number("most", UINT64_MAX).key("least").integer(INT64_MIN).key("real").real(1e-300);
  EXPECT_EQ(line.finish(),
            R"({"most":18446744073709551615,"least":-9223372036854775808,"real":1e-300})");
}

// JSON has no such numbers: a reader must still get a line that it can parse.
TEST(Json, NumbersThatAreNone) {
  for (double none : {std::nan(""), std::numeric_limits<double>::infinity(),
                      -std::numeric_limits<double>::infinity()}) {
    JsonLine line;
    line.key("a").real(none).number("b", 1);
    auto d = parse(line.finish());
    if (d.HasParseError()) continue;
    EXPECT_TRUE(d["a"].IsNull());
    EXPECT_EQ(d["b"].GetUint64(), 1u);
  }
}

TEST(Json, TextIsEscapedAndKept) {
  auto text = "a\"b\\c/\n\r\t\x1b[2J\0\x7f\xc3\xa9\xe2\x80\xae\xf0\x9f\x90\xa7"sv;
  JsonLine line;
  line.text("t", text);
  auto out = line.finish();
  for (char c : out) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << out;
  auto d = parse(out);
  EXPECT_EQ(std::string(d["t"].GetString(), d["t"].GetStringLength()), text);
}

// Valid JSON that a terminal would take for commands: each is the same text when it is parsed.
TEST(Json, NothingThatATerminalObeys) {
  auto text = "\xc2\x9b[2J\xc2\x85\x7f\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81"sv;
  JsonLine line;
  line.text("t", text);
  auto out = line.finish();
  EXPECT_EQ(out, R"({"t":"\u009b[2J\u0085\u007f\u202e\u2028\ufeff\udb40\udc41"})");
  auto d = parse(out);
  EXPECT_EQ(std::string(d["t"].GetString(), d["t"].GetStringLength()), text);
}

TEST(Json, AnyBytesMakeALineThatParses) {
  std::mt19937 random(42);
  for (int i = 0; i < 5000; i++) {
    std::string text;
    for (auto n = random() % 30; n; n--) text += static_cast<char>(random());
    JsonLine line;
    line.text("t", text);
    auto out = line.finish();
    auto d = parse(out);
    ASSERT_FALSE(d.HasParseError());
    ASSERT_EQ(printable(out), out);
    ASSERT_EQ(std::string(d["t"].GetString(), d["t"].GetStringLength()), valid_utf8(text));
  }
}

std::string value(const Format& format, const Value& v) {
  JsonLine line;
  line.key("v");
  json_value(line, {"v", "V", format, ""}, v, Names());
  return std::string(line.finish());
}

TEST(JsonValue, RawNumbersAndNames) {
  EXPECT_EQ(value(as::milliseconds, std::uint64_t{1'234'567}), R"({"v":1234567})")
      << "raw, the unit is in the key";
  EXPECT_EQ(value(as::number, std::int64_t{-1}), R"({"v":-1})");
  EXPECT_EQ(value(as::percent, 0.5), R"({"v":0.5})");
  EXPECT_EQ(value(as::thousandths, std::int64_t{-500}), R"({"v":-0.5})");
  EXPECT_EQ(value(as::gfp, std::uint64_t{0xcc0}), R"({"v":"GFP_KERNEL"})");
  EXPECT_EQ(value(as::disk, std::uint64_t{0xffffffff}), R"({"v":"4095:1048575"})");
  EXPECT_EQ(value(as::number, Value{}), R"({"v":null})");
  EXPECT_EQ(value(as::comm, std::string("a\"b")), R"({"v":"a\"b"})");
  EXPECT_EQ(value(as::text, true), R"({"v":true})");
}

TEST(JsonValue, ListsOfTextAreArrays) {
  TextList words{{"sh", "-c", "", "a \"b\"\x1b"}, "sh -c  a \"b\"\x1b ..."};
  EXPECT_EQ(value(as::rest, words), R"({"v":["sh","-c","","a \"b\"\u001b"]})");
  EXPECT_EQ(value(as::rest, TextList{}), R"({"v":[]})");
  Field field{"args", "ARGS", as::rest, ""};
  EXPECT_EQ(csv_value(field, words, Names()), "\"sh -c  a \"\"b\"\"\\x1b ...\"");
  EXPECT_EQ(show(as::rest, words, Names()), "sh -c  a \"b\"\\x1b ...");
  field.read = [](const void*, const FieldContext&) -> Value { return TextList(); };
  EXPECT_EQ(key(field, 8).type, "array of strings");
  EXPECT_EQ(csv_key(field, 8).type, "string");
}

TEST(JsonValue, HiddenAddresses) {
  Names names;
  names.why_hidden = [] { return std::optional<Error>(Error{}); };
  Field field{"v", "V", as::pointer, ""};
  Value kernel = std::uint64_t{0xffff888012345678};
  JsonLine line;
  line.key("v");
  json_value(line, field, kernel, names);
  EXPECT_EQ(line.finish(), R"({"v":null})");
  EXPECT_EQ(csv_value(field, kernel, names), "");
  EXPECT_EQ(csv_value(field, std::uint64_t{4096}, names), "4096");
}

std::string csv(const Format& format, const Value& v) {
  return csv_value({"v", "V", format, ""}, v, Names());
}

TEST(CsvValue, RawNumbersAndNames) {
  EXPECT_EQ(csv(as::milliseconds, std::uint64_t{1'234'567}), "1234567");
  EXPECT_EQ(csv(as::number, std::int64_t{-1}), "-1");
  EXPECT_EQ(csv(as::percent, 0.5), "0.5");
  EXPECT_EQ(csv(as::thousandths, std::int64_t{-500}), "-0.500");
  EXPECT_EQ(csv(as::gfp, std::uint64_t{0xdc0}), "GFP_KERNEL|__GFP_ZERO");
  EXPECT_EQ(csv(as::number, Value{}), "");
  EXPECT_EQ(csv(as::text, false), "false");
  EXPECT_EQ(csv(as::comm, std::string("a,\"b\n")), "\"a,\"\"b\\x0a\"");
}

}  // namespace
}  // namespace coretap
