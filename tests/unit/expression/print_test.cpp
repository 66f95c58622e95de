// Messages against printf.
#include "expression/print.hpp"

#include <arpa/inet.h>

#include "expect.hpp"

namespace coretap::expression {
namespace {

Output of(const TypePtr& type, Output::Form form = Output::number) { return {form, type}; }

TypePtr type(std::string name, std::uint32_t bytes, bool is_signed) {
  return std::make_shared<const Type>(Type{Type::integer, std::move(name), bytes, is_signed});
}

std::string shown(const std::string& format, const Output& output, const Shown& value,
                  const Namers& namers = {}) {
  auto parsed = parse_format(format, format, 0);
  if (!parsed) return "error: " + parsed.error().what;
  return render(*parsed, {output}, {value}, namers);
}

template <class T>
std::string as_c(const char* format, T value) {
  char text[256];
  snprintf(text, sizeof text, format, value);
  return text;
}

TEST(MessageFormats, NumbersAreThoseOfPrintf) {
  auto int_type = type("int", 4, true), long_type = type("long", 8, true);
  for (const char* format : {"%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%x", "%#x", "%X",
                             "%o", "%#o", "%u", "%08x", "%hd", "%hhu"})
    for (int value : {0, 1, -1, 42, 65535, -32769, 2147483647})
      EXPECT_EQ(shown(format, of(int_type), {static_cast<std::uint64_t>(std::int64_t{value})}),
                as_c(format, value))
          << format << " " << value;
  for (const char* format : {"%ld", "%lld", "%lx", "%lu", "%20ld"})
    for (long value : {0L, -1L, 0x123456789abcdefL})
      EXPECT_EQ(shown(format, of(long_type), {static_cast<std::uint64_t>(value)}),
                as_c(format, value))
          << format;
}

TEST(MessageFormats, ALongIsShownWholeWhereItsTypeIsKnown) {
  EXPECT_EQ(shown("%d", of(type("long", 8, true)), {0x100000000}), "4294967296");
  EXPECT_EQ(shown("%d", of(integer_type(8, false)), {0xffffffff}), "-1") << "a register";
  EXPECT_EQ(shown("%lu", of(integer_type(8, false)), {0xffffffff}), "4294967295");
}

TEST(MessageFormats, TextAndCharacters) {
  auto text = of(pointer_to(type("char", 1, true)), Output::text);
  expect_each(
      [&](const std::string& format) {
        return shown(format, text, {0, "abc"});
      },
      {"[%s] => [abc]", "[%6s] => [   abc]", "[%-6s] => [abc   ]", "[%.2s] => [ab]"});
  EXPECT_EQ(shown("%s", text, {0, "abc", false, true}), "abc...");
  EXPECT_EQ(shown("%s", text, {0, "", true}), "(fault)");
  EXPECT_EQ(shown("%c%%", of(type("int", 4, true)), {'x'}), "x%");
  EXPECT_EQ(shown("%p", of(integer_type(8, false)), {0xabc}), "0xabc");
}

TEST(MessageFormats, AddressesErrorsAndFunctions) {
  Output address = of(integer_type(4, false), Output::bytes);
  EXPECT_EQ(shown("%I", address, {0, std::string("\xc0\0\2\1", 4)}), "192.0.2.1");
  std::string v6(16, '\0');
  v6[15] = 1;
  EXPECT_EQ(shown("%I", address, {0, v6}), "::1");
  EXPECT_EQ(shown("%I", of(integer_type(4, false)), {htonl(0x7f000001)}), "127.0.0.1");
  auto result = of(type("long", 8, true));
  EXPECT_EQ(shown("%E", result, {static_cast<std::uint64_t>(-2L)}), "ENOENT");
  EXPECT_EQ(shown("%E", result, {7}), "7");
  EXPECT_EQ(shown("%E", of(integer_type(8, true)), {static_cast<std::uint64_t>(-13L)}), "EACCES");
  Namers namers{[](std::uint64_t a) { return "kernel:" + std::to_string(a); },
                [](std::uint64_t a) { return "user:" + std::to_string(a); }};
  EXPECT_EQ(shown("%K", result, {5}, namers), "kernel:5");
  EXPECT_EQ(shown("%U", result, {6}, namers), "user:6");
}

TEST(MessageFormats, WhatIsWrongIsRefused) {
  for (auto* format : {"%", "%q", "%-", "%5", "%l", "%n", "%9999d", "%.9999d", "%f"})
    EXPECT_TRUE(shown(format, of(type("int", 4, true)), {1}).starts_with("error")) << format;
}

}  // namespace
}  // namespace coretap::expression
