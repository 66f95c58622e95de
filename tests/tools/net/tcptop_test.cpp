// tcptop against connections of a private network namespace: the bytes of each call are known.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

void expect_truth(const std::string& options) {
  SCOPED_TRACE(options);
  auto seen = watch({"tcptop --json --strict --netns {pid} 10"}, "tcpio " + options);
  auto report = seen.report();
  if (options.ends_with("splice") && !report.header["limits"].items().empty())
    throw Skip("splices from sockets are not seen here");
  auto writer = report.of_process(seen.pid), reader = report.of_process(seen.number("reader_pid"));
  expect_sums(writer, seen.truth, {"sends", {"tx_bytes", "sent"}});
  expect_sums(reader, seen.truth, {"receives", {"rx_bytes", "received"}});
  EXPECT_EQ(sum(writer, "receives") + sum(writer, "rx_bytes"), 0u);
  EXPECT_EQ(sum(reader, "sends") + sum(reader, "tx_bytes"), 0u);
}

TOOL_TEST(Tcptop, BytesThatWereMoved) { expect_truth("--messages 50 --fail"); }
TOOL_TEST(Tcptop, BytesThatAreNotReceived) { expect_truth("--keep 5000"); }
TOOL_TEST(Tcptop, Ipv6) { expect_truth("--size 30000 --fail --family 6"); }
TOOL_TEST(Tcptop, PeeksDoNotCount) { expect_truth("--size 500 --peek"); }
TOOL_TEST(Tcptop, OneReceiveThatWaits) { expect_truth("--size 40000 --pieces 2 --take waitall"); }
TOOL_TEST(Tcptop, Sendfile) { expect_truth("--size 4096 --way sendfile"); }
TOOL_TEST(Tcptop, Splice) { expect_truth("--size 3000 --take splice"); }

TOOL_TEST(Tcptop, ARowForEachEnd) {
  auto seen = watch({"tcptop --json --strict --netns {pid} 10"}, "tcpio --messages 3");
  ASSERT_EQ(seen.shown(0), 2u);
  auto of_reader = seen.number("port"), of_writer = seen.truth["port"].u64();
  for (auto& line : seen.body()) {
    bool writer = line["pid"].u64() == seen.pid;
    expect_fields(line, kFour.ends() + "comm tcpio uid 0 total_bytes 3000");
    expect_fields(line, {{"netns", seen.netns},
                         {"local_port", writer ? of_writer : of_reader},
                         {"remote_port", writer ? of_reader : of_writer}});
  }
}

TOOL_TEST(Tcptop, Filters) {
  auto [four, six] =
      watch_each({{"tcpio",
                   {"tcptop --json 10 -p {pid}", "tcptop --json 10 -L {port} --netns {pid}",
                    "tcptop --json 10 --comm tcpio --not-pid {0},{1} -D 1"}},
                  {"tcpio --family 6", {"tcptop --json 10 -6 --netns {pid}"}}},
                 {});
  ASSERT_EQ(four.shown(0), 1u);
  EXPECT_EQ(four.report(0).sum("tx_bytes"), 10'000u);
  EXPECT_GE(four.report(0).lost("filtered"), 30u);
  expect_same(only(four.body(1)), four.ready, {{"pid", "reader_pid"}});
  EXPECT_EQ(four.shown(2), 0u);
  EXPECT_EQ(six.shown(0), 2u);
  for (auto& line : six.body()) EXPECT_EQ(line["local_address"].str(), "::1");
}

TOOL_TEST(Tcptop, BlocksHaveTheKnownColumns) {
  auto seen =
      watch({"tcptop -p {pid} 10", "tcptop -S -p {pid} 10"}, "tcpio --messages 2 --size 4096");
  expect_contains(seen.text(0), {" loadavg: "});
  EXPECT_FALSE(contains(seen.text(1), "loadavg")) << seen.text(1);
  auto rows = lines(seen.text(1));
  expect_row(rows.at(1), seen.filled("{pid} tcpio 127.0.0.1:" + seen.truth["port"].text() +
                                     " 127.0.0.1:{port} 0 8"));
}

TOOL_TEST(Tcptop, SortsByTheWordsOfPeers) {
  for (std::string word : {"all", "sent", "received"}) {
    auto seen =
        watch({"tcptop --csv --netns {pid} 10 -s " + word}, "tcpio --messages 2 --keep 100");
    auto text = seen.text();
    auto writer = text.find(seen.filled(",{pid},")),
         reader = text.find(seen.filled(",{reader_pid},"));
    ASSERT_NE(writer, text.npos) << text;
    ASSERT_NE(reader, text.npos) << text;
    EXPECT_EQ(writer < reader, word != "received") << text;
  }
}

TESTS_OF(tcptop, .events = {{}, "tcpio"},
         .stress = count_row("tcpio --messages {n/2}", 1500, "sends+receives", "calls", {},
                             "pid reader_pid"));

}  // namespace
}  // namespace coretap::tooltest
