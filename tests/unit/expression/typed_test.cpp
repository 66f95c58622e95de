// Values of types that this kernel has, of bytes that are known.
#include "expression/typed.hpp"

#include <arpa/inet.h>
#include <linux/ip.h>
#include <linux/time_types.h>
#include <netinet/in.h>

#include "expect.hpp"
#include "run_code.hpp"

namespace coretap::expression {
namespace {

/// A value in memory, of a type by its name; `bytes` of it were copied.
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
  __kernel_timespec t{5, 0};
  EXPECT_EQ(shown("struct __kernel_timespec", &t, sizeof t),
            "(struct __kernel_timespec){.tv_sec = 5}");
  t = {-1, 999};
  EXPECT_EQ(shown("struct __kernel_timespec", &t, sizeof t),
            "(struct __kernel_timespec){.tv_sec = -1, .tv_nsec = 999}");
  t = {};
  EXPECT_EQ(shown("struct __kernel_timespec", &t, sizeof t), "(struct __kernel_timespec){}");
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

// Types that contain each other, and the largest ones, come to an end.
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
