// Values: messages against printf, and types of this kernel, from known bytes.
#include <arpa/inet.h>
#include <linux/ip.h>
#include <linux/time_types.h>
#include <netinet/in.h>

#include "expect.hpp"
#include "expression/print.hpp"
#include "expression/typed.hpp"
#include "run_code.hpp"

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
  EXPECT_EQ(shown("%d", of(integer_type(8, true)), {0x100000000}), "4294967296");
  EXPECT_EQ(shown("%d", of(untyped_register(false)), {0xffffffff}), "-1");
  EXPECT_EQ(shown("%d", of(untyped_register(true)), {0x1ffffffff}), "-1");
  EXPECT_EQ(shown("%lu", of(untyped_register(false)), {0xffffffff}), "4294967295");
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

/// A value in memory, with a type by name; `bytes` of it were copied.
std::string shown(std::string_view type, const void* data, std::size_t bytes,
                  bool one_line = true) {
  Output output{Output::bytes, types().named(type), 0, static_cast<std::uint32_t>(bytes)};
  if (!output.type) return "no such type";
  auto layout = layout_of(kernel_types(), output, static_cast<std::uint32_t>(bytes));
  return typed(*layout, output, {0, std::string(static_cast<const char*>(data), bytes)}, one_line);
}

std::string number(TypePtr type, std::uint64_t value) {
  Output output{Output::number, std::move(type)};
  return typed(*layout_of(kernel_types(), output, 8), output, {value}, true);
}

TEST(Typed, MembersThatAreZeroAreLeftOut) {
  for (auto [t, text] : {std::pair<__kernel_timespec, const char*>{{5, 0}, ".tv_sec = 5"},
                         {{-1, 999}, ".tv_sec = -1, .tv_nsec = 999"},
                         {{0, 0}, ""}})
    EXPECT_EQ(shown("struct __kernel_timespec", &t, sizeof t),
              fmt::format("(struct __kernel_timespec){{{}}}", text));
}

TEST(Typed, StructsWithinStructs) {
  const __kernel_timespec all[] = {{1, 0}, {0, 2}};
  EXPECT_EQ(shown("struct __kernel_itimerspec", all, sizeof all),
            "(struct __kernel_itimerspec){.it_interval = {.tv_sec = 1}, .it_value = {.tv_nsec = "
            "2}}");
  EXPECT_EQ(shown("struct __kernel_itimerspec", all, sizeof all, false),
            "(struct __kernel_itimerspec){\n"
            "    .it_interval = {\n"
            "        .tv_sec = 1,\n"
            "    },\n"
            "    .it_value = {\n"
            "        .tv_nsec = 2,\n"
            "    },\n"
            "}");
}

TEST(Typed, WhatIsCutOff) {
  const __kernel_timespec all[] = {{1, 2}, {3, 4}};
  EXPECT_EQ(shown("struct __kernel_itimerspec", all, sizeof(all[0])),
            "(struct __kernel_itimerspec){.it_interval = {.tv_sec = 1, .tv_nsec = 2}, ...}");
  EXPECT_EQ(shown("struct __kernel_itimerspec", all, sizeof(all[0]) + 8),
            "(struct __kernel_itimerspec){.it_interval = {.tv_sec = 1, .tv_nsec = 2}, "
            ".it_value = {.tv_sec = 3, ...}, ...}");
  EXPECT_EQ(shown("struct __kernel_timespec", all, 3), "(struct __kernel_timespec){...}");
}

TEST(Typed, BitFieldsAndUnions) {
  iphdr h{};
  h.version = 4;
  h.ihl = 5;
  h.ttl = 64;
  h.tot_len = 7;
  auto text = shown("struct iphdr", &h, sizeof h);
  EXPECT_EQ(text, "(struct iphdr){.ihl = 5, .version = 4, .tot_len = 7, .ttl = 64}");
  // A union has all its members.
  in6_addr address{};
  address.s6_addr[0] = 1;
  text = shown("struct in6_addr", &address, sizeof address);
  EXPECT_EQ(text,
            "(struct in6_addr){.in6_u = {.u6_addr8 = {1}, .u6_addr16 = {1}, .u6_addr32 = {1}}}");
}

TEST(Typed, TextAndElements) {
  const char name[16] = "some\0else";
  Type array{Type::array, "char []"};
  array.to = types().named("char");
  array.count = array.bytes = 16;
  auto show = [&](const void* data) {
    Output output{Output::bytes, std::make_shared<const Type>(array), 0, 16};
    auto layout = layout_of(kernel_types(), output, 16);
    return typed(*layout, output, {0, std::string(static_cast<const char*>(data), 16)}, true);
  };
  EXPECT_EQ(show(name), "\"some\"");
  const char lines[16] = "two\nlines";
  EXPECT_EQ(show(lines), "\"two\nlines\"");
  Output text{Output::text, types().named("char")};
  EXPECT_EQ(typed({}, text, {1, "two\nlines"}, true), "\"two\nlines\"");
  EXPECT_EQ(typed({}, text, {1, "two\nlines", false, true}, false), "\"two\\x0alines\"...");
  const char behind[16] = {0, 'a', 0, -1};
  EXPECT_EQ(show(behind), "{0, 'a', 0, -1}");
}

TEST(Typed, NumbersAndPointers) {
  struct {
    const char* type;
    std::uint64_t value;
    std::string_view text;
  } const cases[] = {{"enum pid_type", 1, "PIDTYPE_TGID"},
                     {"enum pid_type", 77, "77"},
                     {"int", 0xffffffff, "-1"},
                     {"unsigned int", 0xffffffff, "4294967295"},
                     {"long", UINT64_MAX, "-1"},
                     {"bool", 1, "true"},
                     {"bool", 0, "false"},
                     {"char", 'x', "'x'"},
                     {"char", '\n', "10"}};
  for (auto& c : cases) EXPECT_EQ(number(types().named(c.type), c.value), c.text) << c.type;
  auto file = pointer_to(types().named("struct file"));
  EXPECT_EQ(number(file, 0), "NULL");
  EXPECT_EQ(number(file, static_cast<std::uint64_t>(-2)), "ERR_PTR(-2)");
  EXPECT_EQ(number(file, 0xffff888100000000), "0xffff888100000000");
  Output output{Output::bytes, file, 0, 8};
  auto layout = layout_of(kernel_types(), output, 8);
  EXPECT_EQ(typed(*layout, output, {0xffff888100000000, std::string(8, '\0'), true}, true),
            "(fault)");
}

// Recursive types, and the largest ones, end.
TEST(Typed, AnyStruct) {
  std::string bytes(1024, '\xa5');
  for (auto name : {"struct task_struct", "struct sock", "struct inode", "struct sk_buff",
                    "struct mm_struct", "struct page"}) {
    auto text = shown(name, bytes.data(), bytes.size());
    EXPECT_TRUE(text.starts_with(std::string("(") + name + "){")) << name;
    EXPECT_LT(text.size(), 100'000U);
  }
}

}  // namespace
}  // namespace coretap::expression
