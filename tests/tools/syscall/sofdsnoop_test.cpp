// sofdsnoop against a program that passes descriptors of known files to its child.
#include "calls.hpp"

namespace coretap::tooltest {
TOOL_TEST(Sofdsnoop, EachDescriptor) {
  auto seen = watch_all(
      {{"passing", {"sofdsnoop --json --strict -p {pid},{child}", "sofdsnoop -t {pid}"}}}, {})[0];
  auto child = seen.number("child");
  auto files = seen.truth["files"].items();
  std::size_t sent = 0, received = 0;
  for (auto& event : seen.body()) {
    bool sends = event["action"].str() == "SEND";
    auto& next = sends ? sent : received;
    ASSERT_LT(next, files.size());
    auto& file = files[next++];
    SCOPED_TRACE(event["action"].str() + " " + file["name"].str());
    expect_fields(event, {{"pid", sends ? seen.pid : child},
                          {"peer_pid", sends ? child : seen.pid},
                          {"comm", "passing"}});
    expect_same(event, file, {{"fd", sends ? "sent" : "received"}, {"file", "name"}});
    if (sends) expect_same(event, seen.ready, {{"socket_fd", "socket"}, "socket_inode"});
  }
  EXPECT_EQ(sent, files.size());
  EXPECT_EQ(received, files.size());
  expect_row(lines(seen.text(1)).at(1),
             seen.filled("SEND {pid} passing {socket}:socket:[{socket_inode}] ") +
                 files[0]["sent"].text() + " " + files[0]["name"].str());
}

TESTS_OF(sofdsnoop, .events = {"-T", "passing"},
         .stress = event_row("passing --rounds {n/4}", 2000, "sent"));

}  // namespace coretap::tooltest
