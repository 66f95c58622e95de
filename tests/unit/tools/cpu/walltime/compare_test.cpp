#include "tools/cpu/walltime/compare.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

WallOwner owner(std::uint64_t ns) {
  WallOwner o;
  o.owner = 5;
  o.time_ns = ns;
  o.cells[{WALL_CPU}] = {ns, 1, ns};
  return o;
}

TEST(WallSlices, AreMergedWhenThereAreManyAndLoseNothing) {
  WallSlices slices;
  slices.begin(0);
  std::uint64_t now = 0, all = 0;
  for (int i = 0; i < 1000; i++) {
    now += 100'000'000;
    slices.add(owner(50'000'000));
    all += 50'000'000;
    if (slices.due(now)) slices.cut(now);
  }
  slices.cut(now);
  std::uint64_t lasted = 0, thread = 0, cpu = 0;
  auto parts = slices.take();
  EXPECT_GE(parts.size(), StackComparison::kMostSlices / 2);
  EXPECT_LT(parts.size(), StackComparison::kMostSlices);
  for (auto& part : parts) {
    lasted += part.lasted_ns;
    thread += part.thread_ns;
    for (auto& [number, of] : part.owners) cpu += of.cells.at({WALL_CPU}).ns;
  }
  EXPECT_EQ(lasted, now);
  EXPECT_EQ(thread, all);
  EXPECT_EQ(cpu, all);
}

TEST(WallComparison, RefusesStacksWithoutStates) {
  const auto path = fs::temp_directory_path() / fmt::format("folded-{}", getpid());
  std::ofstream(path) << "a;main;[cpu.user] 5\na;main;write 5\n";
  WallComparison comparison;
  auto r = comparison.read(path);
  fs::remove(path);
  ASSERT_FALSE(r);
  EXPECT_TRUE(says(r.error().why, "without a state of walltime: a;main;write"));
}

}  // namespace
}  // namespace coretap
