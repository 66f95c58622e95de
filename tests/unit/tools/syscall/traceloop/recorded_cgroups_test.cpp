#include "tools/syscall/traceloop/recorded_cgroups.hpp"

#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"
#include "syscall/traceloop.h"
#include "tools/syscall/traceloop/report_calls.hpp"

namespace coretap {
namespace {

using Levels = std::vector<std::uint32_t>;

Levels every_level() {
  Levels all;
  for (std::uint32_t level = RECORD_LEVELS; level-- > 0;) all.push_back(level);
  return all;
}

TEST(RecordedCgroups, LevelsDeepestFirst) {
  auto levels = cgroup_levels({{1, "a", 2}, {2, "b", 5}, {3, "c", 2}, {4, "/", 0}});
  EXPECT_EQ(levels, in_first_cgroup_namespace() ? (Levels{5, 2, 0}) : every_level());
}

TEST(RecordedCgroups, AllLevelsWhereOneIsTooDeep) {
  EXPECT_EQ(cgroup_levels({{1, "a", RECORD_LEVELS}, {2, "b", 1}}), every_level());
}

TEST(RecordedCgroups, ThoseOfTheCommandLine) {
  auto parsed = parse_command_line(build(*find_tool("traceloop")),
                                   {"-c", "/a", "--cgroup", "b", "/c", "--dump-signal", "USR2"});
  ASSERT_TRUE(parsed) << parsed.error().what;
  auto& settings = parsed->config.own<CallSettings>();
  ASSERT_EQ(settings.cgroups.size(), 3u);
  EXPECT_EQ(settings.cgroups[0].name, "/a");
  EXPECT_EQ(settings.cgroups[1].name, "b");
  EXPECT_EQ(settings.cgroups[2].name, "/c");
  EXPECT_EQ(settings.dump_signal, SIGUSR2);
}

TEST(RecordedCgroups, OneThatThereIsNot) {
  std::vector<RecordedCgroup> none{{0, "/no/such/cgroup", 0}};
  EXPECT_FALSE(find_cgroups(none, true));
}

}  // namespace
}  // namespace coretap
