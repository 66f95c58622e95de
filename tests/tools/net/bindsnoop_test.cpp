// bindsnoop against a program that binds sockets in a private network namespace.
#include "connections.hpp"

namespace coretap::tooltest {
TOOL_TEST(Bindsnoop, EachCall) {
  auto seen = watch(
      {"bindsnoop --json --strict -E -p {pid}", "bindsnoop --json --netns {pid}",
       "bindsnoop --json -x -P 80,4999-5000 --netns {pid}", "bindsnoop --json --count -p {pid}"},
      "sockets");
  auto binds = seen.truth["binds"].items(), events = seen.body();
  ASSERT_EQ(events.size(), binds.size());
  std::size_t failed = 0;
  for (std::size_t i = 0; i < binds.size(); i++) {
    SCOPED_TRACE(i);
    auto error = binds[i]["errno"].i64();
    failed += error != 0;
    expect_fields(events[i],
                  {{"pid", seen.pid}, {"comm", "sockets"}, {"error", error_name(error)}});
    expect_same(events[i], binds[i],
                {"protocol",
                 "ip",
                 {"local_address", "address"},
                 {"local_port", "port"},
                 {"socket_options", "options"},
                 "interface"});
  }
  EXPECT_EQ(seen.shown(1), seen.number("bound"));
  EXPECT_GE(seen.report(1).lost("filtered"), failed) << "other programs bind, too";
  EXPECT_EQ(seen.shown(2), 3u) << "80, 5000 and 5000 that failed";
  expect_sums(seen.report(3), seen.truth, {{"binds", "bound"}});
}

TESTS_OF(bindsnoop, .reports = {{ReportKind::events}, {ReportKind::aggregate, {"--count"}}},
         .events = {"-E", "sockets"},
         .stress = event_row("sockets --rounds {n/9}", 1800, "bind_calls", "-E"));

}  // namespace coretap::tooltest
