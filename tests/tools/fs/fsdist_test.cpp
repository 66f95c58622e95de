// fsdist against processes that make known numbers of operations, on private file systems.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Operations per round of the workload.
constexpr std::pair<const char*, std::uint64_t> kPerRound[] = {
    {"read", 4}, {"write", 3}, {"open", 2}, {"fsync", 2}, {"getattr", 1}};

std::uint64_t operations_of_rounds(stress::Load& load) {
  std::uint64_t per_round = 0;
  for (auto& [operation, count] : kPerRound) per_round += count;
  return load.truth("rounds") * per_round;
}

void expect_rounds(const std::vector<Json>& lines, std::uint64_t rounds) {
  for (auto& line : lines) EXPECT_GT(line["total_ns"].u64(), 0u);
  for (auto& [operation, count] : kPerRound)
    EXPECT_EQ(sum(lines_with(lines, {{"operation", operation}}), "count"), count * rounds)
        << operation;
}

TOOL_SUITE(FsdistOn, (kFileSystems));

TOOL_TEST_P(FsdistOn, OperationsOfEach, type) {
  auto [seen, memory] = observe_beside("filecalls --rounds 30",
                                       {"fsdist --json --strict -p {pid},{other}",
                                        "fsdist --json --strict -t " + type + " -p {pid},{other}"},
                                       "filecalls --rounds 20 --mkfs " + type);
  auto in_memory = memory["rounds"].u64(), on_disk = seen.truth["rounds"].u64();
  auto apart = seen.report(0), of_type = seen.report(1);
  expect_rounds(lines_with(apart.body, {{"fs_type", type_of_mount(type)}}), on_disk);
  expect_rounds(lines_with(apart.body, {{"fs_type", "tmpfs"}}), in_memory);
  EXPECT_EQ(apart.body.size(), 2 * std::size(kPerRound));
  EXPECT_FALSE(uses_functions(apart));
  if (has_functions(type)) {
    EXPECT_TRUE(uses_functions(of_type));
  }
  expect_rounds(of_type.body, on_disk);
  EXPECT_EQ(of_type.body.size(), std::size(kPerRound));
}

TOOL_TEST(Fsdist, TextAndAFileSystemThatIsNotThere) {
  expect_contains(observe("fsdist -t tmpfs -e -p {pid}", "filecalls --rounds 5").text(),
                  {"operation = read\n     usecs               : count ", ", count: 20\n"});
  expect_refused("fsdist -t no-such-fs", {"does not know the file system 'no-such-fs'"}, 3);
}

TESTS_OF(fsdist, .events = {{}, "filecalls --rounds 5"}, .nothing_when_idle = true,
         .stress = count_row("filecalls --rounds {n}", 3000, "count", operations_of_rounds,
                             "-t tmpfs"));

}  // namespace
}  // namespace coretap::tooltest
