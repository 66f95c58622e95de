// How values are shown, as a recording has it: read back it shows the same, and damaged bytes lead
// to nothing that is not in a record.
#include "expression/kept.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/recall.hpp"

namespace coretap::expression {
namespace {

Output output_of(Output::Form form, Type type, std::uint32_t at = 0, std::uint32_t room = 0) {
  return {form, std::make_shared<Type>(std::move(type)), at, room};
}

struct Record {
  expression_out out{};
  char text[64] = {};
};

std::string shown(const Conversion& conversion, const Output& output, const Record& record) {
  const auto value = value_of(record.out, 0, output, 80, sizeof record);
  return show(conversion, output, value, {});
}

TEST(Kept, ValuesAreShownTheSame) {
  Record record;
  record.out.values[0] = 0xfffffffffffffff3;
  strcpy(record.text, "some text");
  const auto at = static_cast<std::uint32_t>(offsetof(Record, text));
  const std::pair<std::string, Output> kCases[] = {
      {"%d", output_of(Output::number, {.name = "int", .bytes = 4, .is_signed = true})},
      {"%d", output_of(Output::number, {.name = "unsigned short", .bytes = 2})},
      {"%d", output_of(Output::number, {.name = "u64", .bytes = 8})},
      {"%#-20llx|", output_of(Output::number, {.kind = Type::pointer, .user = true})},
      {"%+08hhd", output_of(Output::number, {.name = "char", .bytes = 1, .character = true})},
      {"%E", output_of(Output::number, {.bytes = 8, .is_signed = true})},
      {"<%12.4s", output_of(Output::text, {.kind = Type::pointer}, at, 64)},
      {"%I", output_of(Output::bytes, {.kind = Type::array}, at, 16)},
      {"%I", output_of(Output::bytes, {.kind = Type::array}, at, 4)},
  };
  for (auto& [format, output] : kCases) {
    SCOPED_TRACE(format);
    const auto conversion = parse_format(format, format, 0)->conversions.front();
    auto again = conversion_from(packed(conversion));
    auto of = output_from(packed(output));
    ASSERT_TRUE(again && of);
    EXPECT_EQ(again->before, conversion.before);
    EXPECT_EQ(shown(*again, *of, record), shown(conversion, output, record));
  }
}

Layout made_layout() {
  Layout number{.kind = Layout::number, .name = "state", .at = 0, .bits = 32, .is_signed = true};
  number.words = {{"OFF", 0}, {"ON", -13}};
  Layout text{.kind = Layout::array, .name = "comm", .at = 32, .bits = 64, .count = 8};
  text.inner = {{.kind = Layout::number, .bits = 8, .character = true}};
  Layout to{.kind = Layout::pointer, .name = "next", .at = 128, .bits = 64};
  Layout all{.kind = Layout::record, .type = "struct made", .bits = 192};
  all.inner = {number, text, to};
  return all;
}

TEST(Kept, LayoutsAreShownTheSame) {
  const auto layout = made_layout();
  const auto again = layout_from(packed(layout));
  ASSERT_TRUE(again);
  std::string bytes(24, '\0');
  const std::int32_t state = -13;
  memcpy(bytes.data(), &state, sizeof state);
  bytes.replace(4, 3, "abc");
  bytes[16] = 1;
  const auto output = output_of(Output::bytes, {.kind = Type::record});
  for (bool one_line : {true, false})
    EXPECT_EQ(typed(*again, output, {.text = bytes}, one_line),
              typed(layout, output, {.text = bytes}, one_line));
  EXPECT_EQ(typed(*again, output, {.text = bytes}, true),
            "(struct made){.state = ON, .comm = \"abc\", .next = 0x1}");
}

TEST(Kept, DamagedBytesAreNothing) {
  const auto layout = packed(made_layout());
  for (std::size_t size = 0; size < layout.size(); size++)
    EXPECT_FALSE(layout_from(std::string_view(layout).substr(0, size))) << size;
  // An array has the layout of its elements.
  EXPECT_FALSE(layout_from(packed(Layout{.kind = Layout::array, .count = 3})));
  EXPECT_FALSE(output_from(""));
  EXPECT_FALSE(conversion_from(""));
  EXPECT_FALSE(output_from(packed(output_of(Output::bytes, {}, 1 << 20))));
  // One within the other, without end.
  Layout deep{.kind = Layout::record};
  for (int i = 0; i < 100; i++) {
    Layout outer{.kind = Layout::record};
    outer.inner.push_back(std::move(deep));
    deep = std::move(outer);
  }
  EXPECT_FALSE(layout_from(packed(deep)));
  Layout made{.kind = Layout::record, .name = "a\x1b", .type = "b\x1b"};
  EXPECT_EQ(layout_from(packed(made))->type, "b\\x1b");
}

/// Arrays of arrays in the same few bytes.
TEST(Kept, AValueHasALimit) {
  Layout all{.kind = Layout::number, .bits = 1};
  for (int i = 0; i < 20; i++) {
    Layout outer{.kind = Layout::array, .bits = 1, .count = 40};
    outer.inner.push_back(std::move(all));
    all = std::move(outer);
  }
  const auto again = layout_from(packed(all));
  ASSERT_TRUE(again);
  const auto text = typed(*again, output_of(Output::bytes, {.kind = Type::array}),
                          {.text = std::string(100, '\xff')}, true);
  EXPECT_LT(text.size(), std::size_t{2} << 20);
}

TEST(Kept, ValuesEndWithTheRecord) {
  Record record;
  strcpy(record.text, "some text");
  const auto at = static_cast<std::uint32_t>(offsetof(Record, text));
  const auto text = output_of(Output::text, {.kind = Type::pointer}, at, 64),
             bytes = output_of(Output::bytes, {.kind = Type::array}, at, 60'000);
  EXPECT_EQ(value_of(record.out, 0, text, 1000, at + 4).text, "some");
  EXPECT_EQ(value_of(record.out, 0, text, 1000, at).text, "");
  EXPECT_EQ(value_of(record.out, 0, bytes, 0, at + 3).text, "som");
  EXPECT_TRUE(value_of(record.out, 0, text, 1000, 8).fault);
  EXPECT_EQ(show({.kind = 'I'}, bytes, {.text = "abc"}, {}), "0.0.0.0");
}

}  // namespace
}  // namespace coretap::expression
