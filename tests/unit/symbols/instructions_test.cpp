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
