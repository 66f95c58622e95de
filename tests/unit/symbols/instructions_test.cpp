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
