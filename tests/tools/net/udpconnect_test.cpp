// udpconnect against a program that connects UDP sockets in a private network namespace.
#include "connections.hpp"

namespace coretap::tooltest {
TOOL_TEST(Udpconnect, EachCall) {
  auto seen = watch({"udpconnect --json --strict -p {pid}", "udpconnect -x --netns {pid}",
                     "udpconnect --json -P 53 --raddr 127.0.0.0/8 -p {pid}"},
                    "sockets");
  auto connects = seen.truth["connects"].items(), events = seen.body();
  ASSERT_EQ(events.size(), connects.size()) << "no disconnects, no TCP";
  for (std::size_t i = 0; i < connects.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = events[i], &call = connects[i];
    auto error = call["errno"].i64();
    expect_fields(event, seen.filled("pid {pid} comm sockets protocol UDP"));
    expect_fields(event, {{"error", error_name(error)}});
    expect_same(event, call, {"ip", {"remote_address", "address"}, {"remote_port", "port"}});
    if (!error) expect_same(event, call, {{"local_address", "address"}, "local_port"});
  }
  expect_contains(seen.text(1), {" sockets          4  192.0.2.1       53    ENETUNREACH"});
  EXPECT_FALSE(contains(seen.text(1), "127.0.0.1")) << seen.text(1);
  EXPECT_EQ(seen.shown(2), 1u);
}

TESTS_OF(udpconnect, .events = {"-w", "sockets"},
         .stress = event_row("sockets --rounds {n/4}", 800, "connect_calls"));

}  // namespace coretap::tooltest
