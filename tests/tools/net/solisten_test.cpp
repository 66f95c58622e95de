// solisten against a program that listens in a private network namespace.
#include "connections.hpp"

namespace coretap::tooltest {
TOOL_TEST(Solisten, EachCall) {
  Scene scene("sockets", {});
  auto id = scene.workload().id();
  struct stat space {};
  ASSERT_EQ(::stat(("/proc/" + id + "/ns/net").c_str(), &space), 0);
  scene.trace("solisten --json --strict -n {pid}");
  scene.trace("solisten --json -6 -p {pid}");
  scene.trace("solisten -t -w -p {pid}");
  // A namespace has a separate limit, which newer kernels copy from the initial one.
  auto most = run({"nsenter", "-t", id, "-n", "cat", "/proc/sys/net/core/somaxconn"});
  if (most.status) most = run({"cat", "/proc/sys/net/core/somaxconn"});
  if (most.status) throw Skip(most.err);
  auto seen = scene.finish();
  auto listens = seen.truth["listens"].items(), events = seen.report().body;
  ASSERT_EQ(events.size(), listens.size());
  for (std::size_t i = 0; i < listens.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = events[i], &call = listens[i];
    auto error = call["errno"].i64();
    expect_fields(event, {{"pid", seen.pid}, {"comm", "sockets"}, {"netns", space.st_ino}});
    expect_fields(event, {{"error", error_name(error)}});
    expect_same(event, call,
                {"protocol", {"local_address", "address"}, {"local_port", "port"}, "backlog"});
    if (!error) {
      EXPECT_EQ(event["max_backlog"].u64(), std::min(call["backlog"].u64(), std::stoul(most.out)));
    }
  }
  EXPECT_EQ(seen.report(1).body.size(), 1u);
  auto rows = lines(seen.text(2));
  expect_row(rows.at(0), "TIME PID COMM RET BACKLOG PROTO PORT ADDR MAX");
  expect_row(rows.at(1), "* " + id + " * 0 7 TCPv4 * 0.0.0.0 7");
}

TESTS_OF(solisten, .events = {"-w", "sockets"},
         .stress = event_row("sockets --rounds {n/3}", 600, "listen_calls"));

}  // namespace coretap::tooltest
