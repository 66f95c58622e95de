// dbstat; dbslower_test.cpp tests it with real servers.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Dbstat, CountsByServerAndCommand) {
  auto tool = "dbstat --json -p {pid} -x" + Strings{workload_path("served")};
  auto seen = observe_with({tool + "-C -S -u", tool + "-m 60000"}, "served --count 4 --ms 3");
  auto report = seen.report();
  for (auto& line : report.body) {
    expect_fields(line, {{"database", "mysql"}});
    EXPECT_GE(line["total_ns"].u64(), line["count"].u64() * 3'000'000);
  }
  expect_sums(report, seen.truth, {{"count", "queries"}});
  EXPECT_EQ(sum(lines_with(report.body, {{"command", "execute"}}), "count"), 4u);
  EXPECT_EQ(seen.report(1).lost("filtered"), seen.truth["queries"].u64());
}

TOOL_TEST(Dbstat, SaysWhatItLacks) {
  expect_refused({"dbstat", "-x", workload_path("sleeper")},
                 {"hint: give the path of a server's program"}, 3);
}

TESTS_OF(dbstat, .events = {{"-S", "-x", workload_path("served")}, {"served", "--count", "2"}},
         .stress = total_row("served --count {n/5+1}", 500, "count", "queries",
                             {"-S", "-x", workload_path("served")})
                       .with_copies(6),
         .long_run = {{.arguments = {"-x", workload_path("served")}}});

}  // namespace coretap::tooltest
