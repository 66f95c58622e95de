// dbstat; dbslower_test.cpp has it beside real servers.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Dbstat, CountsByServerAndCommand) {
  auto path = workload_path("served");
  Workload workload("served", {"--count", "4", "--ms", "3"});
  Tracer tracer("dbstat", {"--json", "-C", "-S", "-u", "-p", workload.id(), "-x", path});
  Tracer above("dbstat", {"--json", "-m", "60000", "-p", workload.id(), "-x", path});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  std::uint64_t all = 0, executed = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["database"].str(), "mysql");
    EXPECT_GE(line["total_ns"].u64(), line["count"].u64() * 3'000'000);
    all += line["count"].u64();
    if (line["command"].str() == "execute") executed += line["count"].u64();
  }
  EXPECT_EQ(all, truth["queries"].u64());
  EXPECT_EQ(executed, 4u);
  EXPECT_EQ(above.stop().lost("filtered"), truth["queries"].u64());
}

TOOL_TEST(Dbstat, SaysWhatItLacks) {
  auto refused = run({tool_path("dbstat"), "-x", workload_path("sleeper")});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_TRUE(contains(refused.err, "hint: give the path of a server's program")) << refused.err;
  EXPECT_EQ(run({tool_path("dbstat"), "oracle"}).status, 2);
}

const DeclareTests kDbstat{{
    .name = "dbstat",
    .reports = {{ReportKind::aggregate}},
    .events = {{"-S", "-x", workload_path("served")}, {"served", "--count", "2"}},
    .stress = {.workload = "served --count {n/5+1}",
               .events = 500,
               .options = {"-S", "-x", workload_path("served")},
               .shown = "count",
               .truth = "queries",
               .copies = 6},
    .long_run = {{.arguments = {"-x", workload_path("served")}}},
}};

}  // namespace
}  // namespace coretap::tooltest
