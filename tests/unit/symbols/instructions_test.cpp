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
  for (auto& [hex, changed] : {std::pair("48 83 ec 08", 1 << 4),
                               {"89 c2", 1 << 2},
                               {"00 c0", 1},
                               {"48 89 e5", 1 << 5},
                               {"31 ff", 1 << 7},
                               {"48 83 c7 01", 1 << 7},
                               {"0f 94 c1", 1 << 1},
                               {"48 8d 7f 08", 1 << 7},
                               {"41 89 c0", 1 << 8},
                               {"bf 00 00 00 00", 1 << 7},
                               {"b6 01", 1 << 6 | 1 << 2},
                               {"40 b6 01", 1 << 6},
                               {"48 99", 1 << 2},
                               {"49 f7 e0", 1 << 2 | 1},
                               {"41 c1 e1 03", 1 << 9},
                               {"f2 48 0f 2d f0", 1 << 6},
                               {"f3 48 0f b8 cf", 1 << 1},
                               {"48 ff c6", 1 << 6},
                               {"48 89 44 24 f8", 1 << 4},
                               {"c7 04 24 00 00 00 00", 1 << 4},
                               {"6a 00", 1 << 4},
                               {"05 01 00 00 00", 1}})
    EXPECT_TRUE(step(hex).harmless && step(hex).changes == static_cast<unsigned>(changed)) << hex;
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
  constexpr unsigned kStack = 1U << 31;
  constexpr struct {
    std::uint32_t instruction, changes;
    Step::Form form = Step::stepped;
    bool may_fault = false;
  } kHarmless[] = {
      {0xaa0103e0, 1 << 0},                        // mov x0, x1
      {0x91001020, 1 << 0},                        // add x0, x1, #4
      {0xd10083ff, kStack},                        // sub sp, sp, #32
      {0x910043fd, 1 << 29},                       // add x29, sp, #16
      {0xf1000c3f, 0},                             // cmp x1, #3
      {0x92401c69, 1 << 9},                        // and x9, x3, #0xff
      {0x927c0c7f, kStack},                        // and sp, x3, #0xf0
      {0x528000a2, 1 << 2},                        // mov w2, #5
      {0xd3431841, 1 << 1},                        // ubfx x1, x2, #3, #4
      {0x8b2163ff, kStack},                        // add sp, sp, x1
      {0xeb01001f, 0},                             // cmp x0, x1
      {0xfa411004, 0},                             // ccmp x0, x1, #4, ne
      {0x9a8600a4, 1 << 4},                        // csel x4, x5, x6, eq
      {0x9b077cc5, 1 << 5},                        // mul x5, x6, x7
      {0x9e660003, 1 << 3},                        // fmov x3, d0
      {0x58000041, 1 << 1},                        // ldr x1, .+8
      {0xd8000040, 0},                             // prfm pldl1keep, .+8
      {0xf9400be2, 1 << 2},                        // ldr x2, [sp, #16]
      {0xfd400be2, 0},                             // ldr d2, [sp, #16]
      {0xa94213e3, 3 << 3},                        // ldp x3, x4, [sp, #32]
      {0xf9400400, 1 << 0, Step::stepped, true},   // ldr x0, [x0, #8]
      {0xf85f8003, 1 << 3, Step::stepped, true},   // ldur x3, [x0, #-8]
      {0xf861680a, 1 << 10, Step::stepped, true},  // ldr x10, [x0, x1]
      {0xf90007e0, kStack},                        // str x0, [sp, #8]
      {0xa9bd7bfd, kStack, Step::push},            // stp x29, x30, [sp, #-48]!
      {0xa90153f3, kStack},                        // stp x19, x20, [sp, #16]
      {0xf81e0ff3, kStack},                        // str x19, [sp, #-32]!
      {0xd503233f, 1 << 30},                       // paciasp
      {0xd53bd048, 1 << 8},                        // mrs x8, tpidr_el0
      {0xd503245f, 0, Step::target},               // bti c
      {0xd503201f, 0, Step::nop},                  // nop
      {0x90000000, 1 << 0, Step::address},         // adrp x0, .
      {0x10000003, 1 << 3, Step::address},         // adr x3, .
  };
  for (auto& [instruction, changes, form, may_fault] : kHarmless) {
    const auto step = entry_step_of_arm64(instruction);
    EXPECT_TRUE(step.harmless && step.changes == changes && step.form == form &&
                step.may_fault == may_fault)
        << std::hex << instruction;
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
