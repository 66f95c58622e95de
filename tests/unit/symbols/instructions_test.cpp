// Lengths of instructions against objdump's output for the C library.
#include "symbols/instructions.hpp"

#include "expect.hpp"
#include "test_files.hpp"

namespace coretap::symbols {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// "   23f40:\t48 83 ec 08 \tsub    $0x8,%rsp": its bytes; empty: not an instruction.
Bytes bytes_of(const char* line) {
  Bytes all;
  const char* at = strchr(line, ':');
  const char* end = at ? strchr(at, '\t') : nullptr;
  if (!end || strstr(line, "(bad)")) return all;
  const char* words = strchr(++end, '\t');
  if (!words) return all;
  for (char* next = nullptr; end < words; end = next) {
    all.push_back(static_cast<std::uint8_t>(strtoul(end, &next, 16)));
    while (*next == ' ') next++;
    if (next == end) return {};
  }
  return all;
}

/// "jmp    23f80 <qsort+0x40>" as its kind and target address; 0: none.
std::pair<Flow::Kind, std::uint64_t> shown_flow(const char* line) {
  std::string_view word(strrchr(line, '\t') + 1);
  for (std::string_view prefix : {"bnd ", "repz ", "notrack "})
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  auto operand =
      word.find(' ') == word.npos ? "" : word.substr(word.find_first_not_of(' ', word.find(' ')));
  const std::uint64_t target = strtoull(std::string(operand).c_str(), nullptr, 16);
  if (word.starts_with("ret")) return {Flow::returns, 0};
  if (word.starts_with("call")) return {Flow::call, 0};
  if (word.starts_with("jmp"))
    return operand.starts_with('*') ? std::pair(Flow::indirect, std::uint64_t{0})
                                    : std::pair(Flow::jump, target);
  if (word.starts_with('j') || word.starts_with("loop")) return {Flow::branch, target};
  if (word.starts_with("ud2") || word.starts_with("hlt") || word.starts_with("int3"))
    return {Flow::ends, 0};
  return {Flow::next, 0};
}

TEST(Instructions, HaveTheLengthsAndTargetsThatObjdumpShows) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "they have one length here";
#endif
  auto path = test::path_of_libc();
  if (path.empty() || access("/usr/bin/objdump", X_OK))
    GTEST_SKIP() << "no C library of its own, or no objdump: CI's machines have both";
  auto* objdump = popen(("/usr/bin/objdump -d -w " + path).c_str(), "r");
  ASSERT_NE(objdump, nullptr);
  std::size_t same = 0, other = 0, unknown = 0, flows = 0, wrong = 0;
  std::vector<char> line(4096);
  while (fgets(line.data(), static_cast<int>(line.size()), objdump)) {
    auto bytes = bytes_of(line.data());
    if (bytes.empty()) continue;
    line[strcspn(line.data(), "\n")] = 0;
    auto flow = flow_of(bytes);
    auto [kind, target] = shown_flow(line.data());
    if (flow.kind == Flow::by_table) flow.kind = Flow::indirect;
    if (flow.kind != Flow::unknown && kind != Flow::next) flows++;
    if (flow.kind != Flow::unknown &&
        (flow.kind != kind ||
         (target && strtoull(line.data(), nullptr, 16) + static_cast<std::uint64_t>(flow.target) !=
                        target)) &&
        wrong++ < 10)
      ADD_FAILURE() << flow.kind << " to " << flow.target << ": " << line.data();
    auto length = bytes.size();
    bytes.resize(length + 16, 0x90);
    auto found = instruction_bytes(bytes);
    same += found == length;
    unknown += found == 0;
    if (found && found != length && other++ < 10) ADD_FAILURE() << found << ": " << line.data();
    if (!found && unknown < 10) printf("not known: %s", line.data());
  }
  pclose(objdump);
  EXPECT_GT(same, 100'000U);
  EXPECT_GT(flows, 20'000U);
  EXPECT_LT(unknown, same / 1000);
}

TEST(Instructions, AtAnEntry) {
#if defined(__x86_64__)
  using Step = EntryStep;
  const auto step = [](const char* hex) {
    return entry_step(bytes_of((std::string(":\t") + hex + " \t").c_str()));
  };
  for (auto* hex : {"f3 0f 1e fa", "48 89 f8", "31 c0", "45 31 d2", "48 85 ff", "b8 01 00 00 00",
                    "48 8d 05 01 00 00 00", "64 48 8b 04 25 28 00 00 00", "0f b6 c0", "48 63 c7",
                    "48 39 d6", "66 0f 1f 44 00 00", "8b 04 24", "66 0f ef c0", "85 c0", "3c 01"})
    EXPECT_TRUE(step(hex).harmless && !step(hex).may_fault && step(hex).form == Step::stepped &&
                !(step(hex).changes & entry_registers(6, true)))
        << hex;
  for (auto* hex : {"8b 47 10", "0f b6 07", "83 3f 00"})
    EXPECT_TRUE(step(hex).harmless && step(hex).may_fault) << hex;
  for (auto* hex :
       {"48 89 07", "0f 05", "c3", "c7 f8 00 00 00 00", "f0 48 01 07", "00 07", "49 90", "0f 11 07",
        "66 0f d6 07", "0f e7 07", "f3 aa", "48 ff 07", "f7 f9", "0f b0 0f"})
    EXPECT_FALSE(step(hex).harmless) << hex;
  // The registers that each changes, as bits.
  for (auto* line : {"48 83 ec 08 = 10",    "89 c2 = 4",
                     "00 c0 = 1",           "48 89 e5 = 20",
                     "31 ff = 80",          "48 83 c7 01 = 80",
                     "0f 94 c1 = 2",        "48 8d 7f 08 = 80",
                     "41 89 c0 = 100",      "bf 00 00 00 00 = 80",
                     "b6 01 = 44",          "40 b6 01 = 40",
                     "48 99 = 4",           "49 f7 e0 = 5",
                     "41 c1 e1 03 = 200",   "f2 48 0f 2d f0 = 40",
                     "f3 48 0f b8 cf = 2",  "48 ff c6 = 40",
                     "48 89 44 24 f8 = 10", "c7 04 24 00 00 00 00 = 10",
                     "6a 00 = 10",          "05 01 00 00 00 = 1"}) {
    const auto made = step(std::string(line, strchr(line, '=')).c_str());
    EXPECT_TRUE(made.harmless && made.changes == strtoul(strchr(line, '=') + 1, nullptr, 16))
        << line;
  }
  for (auto& [hex, form] : {std::pair("55", Step::push),
                            {"41 57", Step::push},
                            {"66 50", Step::stepped},
                            {"48 50", Step::stepped},
                            {"90", Step::nop},
                            {"66 90", Step::stepped},
                            {"49 90", Step::stepped},
                            {"eb 00", Step::branch},
                            {"0f 84 00 00 00 00", Step::branch},
                            {"e8 00 00 00 00", Step::branch},
                            {"74 05", Step::branch}})
    EXPECT_EQ(step(hex).form, form) << hex;
#endif
}

TEST(Instructions, AtAnEntryOfArm64) {
  using Step = EntryStep;
  // mov x0, x1; add x0, x1, #4; sub sp, sp, #32; add x29, sp, #16; cmp x1, #3; and x9, x3, #0xff;
  // and sp, x3, #0xf0; mov w2, #5; ubfx x1, x2, #3, #4; add sp, sp, x1; cmp x0, x1; ccmp x0, x1,
  // #4, ne; csel x4, x5, x6, eq; mul x5, x6, x7; fmov x3, d0; ldr x1, .+8; prfm pldl1keep, .+8;
  // ldr x2, [sp, #16]; ldr d2, [sp, #16]; ldp x3, x4, [sp, #32]; ldr x0, [x0, #8]; ldur x3, [x0,
  // #-8]; ldr x10, [x0, x1]; str x0, [sp, #8]; stp x29, x30, [sp, #-48]!; stp x19, x20, [sp, #16];
  // str x19, [sp, #-32]!; paciasp; mrs x8, tpidr_el0; bti c; nop; adrp x0, .; adr x3, .. Each with
  // what it changes, its form, and whether it may fault.
  for (auto* line : {"aa0103e0 = 1",          "91001020 = 1",        "d10083ff = 80000000",
                     "910043fd = 20000000",   "f1000c3f = 0",        "92401c69 = 200",
                     "927c0c7f = 80000000",   "528000a2 = 4",        "d3431841 = 2",
                     "8b2163ff = 80000000",   "eb01001f = 0",        "fa411004 = 0",
                     "9a8600a4 = 10",         "9b077cc5 = 20",       "9e660003 = 8",
                     "58000041 = 2",          "d8000040 = 0",        "f9400be2 = 4",
                     "fd400be2 = 0",          "a94213e3 = 18",       "f9400400 = 1 0 1",
                     "f85f8003 = 8 0 1",      "f861680a = 400 0 1",  "f90007e0 = 80000000",
                     "a9bd7bfd = 80000000 1", "a90153f3 = 80000000", "f81e0ff3 = 80000000",
                     "d503233f = 40000000",   "d53bd048 = 100",      "d503245f = 0 5",
                     "d503201f = 0 2",        "90000000 = 1 4",      "10000003 = 8 4"}) {
    unsigned i = 0, changes = 0, form = 0, fault = 0;
    sscanf(line, "%x = %x %u %u", &i, &changes, &form, &fault);
    const auto made = entry_step_of_arm64(i);
    EXPECT_TRUE(made.harmless && made.changes == changes && made.form == form &&
                made.may_fault == (fault != 0))
        << line;
  }
  // str x0, [x1]; stp x0, x1, [x2]; str d0, [x0]; str x1, [sp, x2]; ldr x0, [sp], #16; ldp x29,
  // x30, [sp], #16; ldxr; ldadd; svc; brk; wfi; msr nzcv, x0; dmb; autiasp; retaa
  for (auto i : {0xf9000020, 0xa9000440, 0xfd000000, 0xf8226be1, 0xf84107e0, 0xa8c17bfd, 0xc85f7c20,
                 0xf8200041, 0xd4000001, 0xd4200020, 0xd503207f, 0xd51b4200, 0xd5033bbf, 0xd50323bf,
                 0xd65f0bff})
    EXPECT_TRUE(!entry_step_of_arm64(i).harmless && entry_step_of_arm64(i).form == Step::stepped)
        << std::hex << i;
  // b, bl, b.eq, cbz, tbnz, br, blr, ret
  for (auto i : {0x14000002U, 0x94000002U, 0x54000040U, 0xb4000040U, 0x37180041U, 0xd61f0200U,
                 0xd63f0020U, 0xd65f03c0U})
    EXPECT_TRUE(!entry_step_of_arm64(i).harmless && entry_step_of_arm64(i).form == Step::branch)
        << std::hex << i;
}

TEST(Instructions, OfWhichAPlaceIsPart) {
#if defined(__x86_64__)
  const Bytes code{0x55, 0x48, 0x89, 0xe5, 0xe8, 1, 2, 3, 4, 0xc3};
  auto at = [&](std::size_t place) { return instruction_at(code, place); };
  EXPECT_TRUE(at(0).known);
  EXPECT_EQ(at(1).begin, 1U);
  EXPECT_EQ(at(2).begin, 1U);
  EXPECT_EQ(at(2).end, 4U);
  EXPECT_EQ(at(9).begin, 9U);
  EXPECT_FALSE(at(10).known) << "behind the end";
  EXPECT_EQ(instruction_bytes(Bytes{0xe8, 1, 2}), 0U) << "not whole";
  EXPECT_EQ(instruction_bytes(Bytes{0x0f}), 0U);
  EXPECT_EQ(instruction_bytes(Bytes{0x62, 1}), 0U);
  EXPECT_EQ(instruction_bytes(Bytes{0x06}), 0U) << "not in 64-bit code";
  EXPECT_EQ(instruction_bytes(Bytes(15, 0x66)), 0U);
#else
  const Bytes code(12, 0);
  EXPECT_EQ(instruction_at(code, 6).begin, 4U);
  EXPECT_FALSE(instruction_at(code, 12).known);
#endif
  EXPECT_EQ(instruction_bytes({}), 0U);
}

}  // namespace
}  // namespace coretap::symbols
