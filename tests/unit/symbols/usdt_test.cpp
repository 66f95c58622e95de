#include "symbols/usdt.hpp"

#include "expect.hpp"
#include "symbols/elf_symbols.hpp"
#include "test_files.hpp"

// A note as <sys/sdt.h> writes it.
#define PROBE(name, semaphore, value)                                                          \
  asm volatile(                                                                                \
      "990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                        \
      ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"              \
      "993: .8byte 990b\n.8byte 0\n.8byte " semaphore "\n.asciz \"unit_test\"\n.asciz \"" name \
      "\"\n.asciz \"-4@%0\"\n994: .balign 4\n.popsection\n" ::"r"(value))

extern "C" {
__attribute__((section(".probes"), used)) unsigned short usdt_test_gate;
__attribute__((noinline, used)) void usdt_test_function(int n) {
  PROBE("plain", "0", n);
  PROBE("gated", "usdt_test_gate", n + 1);
}
}

namespace coretap::symbols {
namespace {

using Argument = UsdtArgument;
using Arguments = std::vector<UsdtArgument>;

TEST(UsdtArguments, OfX86) {
  EXPECT_EQ(parse_usdt_arguments("-4@$5 8@%rax"),
            (Arguments{{.size = 4, .is_signed = true, .value = 5},
                       {.where = Argument::in_register, .base = "rax"}}));
  EXPECT_EQ(
      parse_usdt_arguments("-1@-8(%rbp) 2@(%rdi)  8@$-0x10"),
      (Arguments{
          {.where = Argument::in_memory, .size = 1, .is_signed = true, .value = -8, .base = "rbp"},
          {.where = Argument::in_memory, .size = 2, .base = "rdi"},
          {.value = -16}}));
  EXPECT_EQ(parse_usdt_arguments("4@8(%rsp,%rcx,4) 8f@%xmm0"),
            (Arguments{{.where = Argument::in_memory,
                        .size = 4,
                        .value = 8,
                        .base = "rsp",
                        .index = "rcx",
                        .scale = 4},
                       {.where = Argument::in_register, .floating = true, .base = "xmm0"}}));
}

TEST(UsdtArguments, OfArm64) {
  EXPECT_EQ(parse_usdt_arguments("-4@5 8@x0 1@[sp, 12] 8@[x1] 4@[x2, x3]"),
            (Arguments{{.size = 4, .is_signed = true, .value = 5},
                       {.where = Argument::in_register, .base = "x0"},
                       {.where = Argument::in_memory, .size = 1, .value = 12, .base = "sp"},
                       {.where = Argument::in_memory, .base = "x1"},
                       {.where = Argument::in_memory, .size = 4, .base = "x2", .index = "x3"}}));
}

TEST(UsdtArguments, WhatIsNotKnownIsNothing) {
  EXPECT_EQ(parse_usdt_arguments(""), Arguments{});
  for (auto* bad : {"4@", "@%rax", "3@%rax", "4@%", "4@symbol(%rip", "4@symbol+4(%rip)", "4@()",
                    "4@8(%rsp,%rcx,3)", "4@[sp", "4@$", "4@$5x", "4@%r-x", "16@%xmm0"})
    EXPECT_FALSE(parse_usdt_arguments(bad)) << bad;
  std::string many;
  for (int i = 0; i < 13; i++) many += "8@%rax ";
  EXPECT_FALSE(parse_usdt_arguments(many));
}

TEST(Usdt, OwnProbes) {
  usdt_test_function(1);
  auto file = test::open_file("/proc/self/exe");
  auto found = read_usdt(file.get());
  EXPECT_TRUE(found.readable);
  std::vector<UsdtProbe> own;
  for (auto& probe : found.probes)
    if (probe.provider == "unit_test") own.push_back(probe);
  ASSERT_EQ(own.size(), 2u);
  EXPECT_TRUE(own[0].name == "plain" && own[0].semaphore == 0) << own[0].name;
  EXPECT_TRUE(own[1].name == "gated" && own[1].semaphore != 0) << own[1].name;
  auto arguments = parse_usdt_arguments(own[0].arguments);
  ASSERT_TRUE(arguments) << own[0].arguments;
  ASSERT_EQ(arguments->size(), 1u);
  EXPECT_EQ(arguments->front().size, 4);
  auto function = find_function(file.get(), "usdt_test_function");
  ASSERT_EQ(function.offsets.size(), 1u);
  EXPECT_GE(own[0].offset, function.offsets[0]);
  EXPECT_LT(own[0].offset, function.offsets[0] + 64);
}

TEST(Usdt, NoFile) {
  EXPECT_FALSE(read_usdt(-1).readable);
  auto text = test::open_file("/proc/self/status");
  EXPECT_FALSE(read_usdt(text.get()).readable);
}

TEST(FindFunctions, ByACondition) {
  auto file = test::open_file("/proc/self/exe");
  auto all = find_functions(
      file.get(), [](const char* name) { return std::string(name).starts_with("usdt_test_f"); },
      100);
  EXPECT_EQ(all.state, FunctionPlace::found);
  ASSERT_EQ(all.functions.size(), 1u);
  EXPECT_EQ(all.functions[0].name, "usdt_test_function");
  EXPECT_EQ(all.functions[0].offset, find_function(file.get(), "usdt_test_function").offsets[0]);
  auto some = find_functions(
      file.get(), [](const char*) { return true; }, 10);
  EXPECT_LE(some.functions.size(), 10u);
  EXPECT_GT(some.beyond, 0u);
}

}  // namespace
}  // namespace coretap::symbols
