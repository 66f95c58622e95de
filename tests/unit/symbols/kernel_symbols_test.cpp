#include "coretap/symbols.hpp"
#include "expect.hpp"
#include "test_files.hpp"

namespace coretap {
namespace {

using symbols::test::sample;

/// "name module" of each; "?" if unknown.
Words found(KernelSymbols& kernel, std::initializer_list<std::uint64_t> addresses) {
  Words all;
  for (auto address : addresses) {
    auto symbol = kernel.find(address);
    all.push_back(symbol.known() ? symbol.name + " " + symbol.module : "?");
  }
  return all;
}

TEST(KernelSymbols, FindsFunctionsAndOffsets) {
  KernelSymbols kernel(sample("kallsyms.txt"));
  EXPECT_EQ(kernel.size(), 0u);
  const Symbol symbol = kernel.find(0xffffffff81000410);
  EXPECT_EQ(symbol.name, "last_function");
  EXPECT_EQ(symbol.module, "kernel");
  EXPECT_EQ(symbol.offset, 0x10u);
  EXPECT_EQ(kernel.find(0xffffffff81000300).name, "weak_function");
  EXPECT_EQ(kernel.size(), 12u);
}

TEST(KernelSymbols, PrefersGlobalAliasesAndNoDecoys) {
  KernelSymbols kernel(sample("kallsyms.txt"));
  // _stext: the first of those with equal addresses
  EXPECT_EQ(found(kernel,
                  {0xffffffff81000100, 0xffffffff81000000, 0xffffffff81000200, 0xffffffff81000221}),
            (Words{"global_alias kernel", "_stext kernel", "padded kernel", "checked kernel"}));
}

TEST(KernelSymbols, NamesModulesInAnyOrder) {
  KernelSymbols kernel(sample("kallsyms.txt"));
  EXPECT_EQ(
      found(kernel, {0xffffffffc0001010, 0xffffffffc0002001, 0xffffffffc0100004}),
      (Words{"ext4_early ext4", "ext4_late ext4", "bpf_prog_6deef7357e7b4530_sd_fw_egress bpf"}));
  EXPECT_EQ(kernel.find(0xffffffffc0200000).module, "__builtin__ftrace");
}

TEST(KernelSymbols, DoesNotGuessOutsideCode) {
  KernelSymbols kernel(sample("kallsyms.txt"));
  // The third and the second last are data, the last one is 16 MiB after.
  EXPECT_EQ(found(kernel, {0, 0x1000, 0x55d000001000, UINT64_MAX, 0xffffffff81000500,
                           0xffffffff81fffff0, 0xffffffff83000001}),
            Words(7, "?"));
  EXPECT_TRUE(kernel.find(0xffffffff82fffff0).known());
}

TEST(KernelSymbols, SurvivesDamage) {
  KernelSymbols kernel(sample("kallsyms_damaged.txt"));
  ASSERT_TRUE(kernel.load());
  EXPECT_EQ(kernel.find(0xffffffff81003000).module, "kernel");
  EXPECT_EQ(kernel.find(0xffffffff81004000).module, "kernel");
  EXPECT_EQ(found(kernel, {0xffffffff81000001, 0xffffffff81005000}),
            (Words{"good_first kernel", "good_last kernel"}));
  EXPECT_EQ(kernel.size(), 4u);
}

TEST(KernelSymbols, SaysThatAddressesAreHidden) {
  KernelSymbols kernel(sample("kallsyms_hidden.txt"));
  const auto result = kernel.load();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().status, kUnsupported);
  EXPECT_FALSE(result.error().why.empty() || result.error().hint.empty());
  EXPECT_FALSE(kernel.find(0xffffffff81000000).known());
  EXPECT_FALSE(kernel_addresses_hidden(sample("kallsyms.txt")));
  auto why = kernel_addresses_hidden(sample("kallsyms_hidden.txt"));
  EXPECT_TRUE(why && !why->why.empty());
  EXPECT_TRUE(kernel_addresses_hidden("/nonexistent/kallsyms"));
}

TEST(KernelSymbols, SaysWhatCannotBeRead) {
  KernelSymbols missing("/nonexistent/kallsyms");
  const auto result = missing.load();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().why.find("/nonexistent/kallsyms"), std::string::npos);
  EXPECT_FALSE(missing.load());  // kept
  KernelSymbols directory("/proc");
  EXPECT_FALSE(directory.load());
  ScratchDirectory scratch;
  KernelSymbols empty(scratch.write("empty", ""));
  EXPECT_FALSE(empty.load());
}

TEST(LockCode, RangesByTheirMarks) {
  ScratchDirectory scratch;
  auto code = lock_code(scratch.write("kallsyms",
                                      "ffffffff81000000 T _stext\n"
                                      "ffffffff81000100 T __mmap_lock_do_trace_released\n"
                                      "ffffffff81000200 T __mmap_lock_do_trace_start_locking\n"
                                      "ffffffff81000300 T vma_mark_detached\n"
                                      "ffffffff81000400 T something_else\n"
                                      "ffffffff82000000 T __sched_text_start\n"
                                      "ffffffff82000000 T mutex_lock\n"
                                      "ffffffff82000800 T __sched_text_end\n"
                                      "ffffffff82000900 T __lock_text_start\n"
                                      "ffffffff82000a00 T __lock_text_end\n"));
  EXPECT_TRUE(code.mmap.begin == 0xffffffff81000100 && code.mmap.end == 0xffffffff81000300);
  EXPECT_TRUE(code.sched.begin == 0xffffffff82000000 && code.sched.end == 0xffffffff82000800);
  EXPECT_TRUE(code.spin.begin == 0xffffffff82000900 && code.spin.end == 0xffffffff82000a00);
  auto hidden = lock_code(scratch.write("hidden", "0000000000000000 T __sched_text_start\n"));
  EXPECT_EQ(hidden.sched.begin, 0u);
  EXPECT_EQ(lock_code("/nonexistent/kallsyms").sched.end, 0u);
}

TEST(KernelSymbols, ReadsTheRunningKernel) {
  KernelSymbols kernel;
  if (const auto result = kernel.load(); !result) GTEST_SKIP() << result.error().why;
  EXPECT_GT(kernel.size(), 1000u);
}

}  // namespace
}  // namespace coretap
