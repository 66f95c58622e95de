// protostat against the kernel's counters of a private network namespace (/proc/net/snmp and
// /proc/net/netstat), in which only the workload has sockets.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kTool[] = "protostat --json --strict --netns {netns} 100";

/// The workload's sockets are open when the tools end.
Observed watch_open(const std::vector<Strings>& tools, const Strings& workload) {
  return watch_all({{workload, tools}})[0];
}

/// Before Linux 6.10, resets that have no socket are not seen; each is a segment.
std::uint64_t unseen_resets(const std::vector<Json>& rows, const Observed& seen,
                            std::uint64_t without_socket) {
  auto unseen = seen.number("resets_out") - sum(rows, "resets_out");
  EXPECT_TRUE(unseen == 0 || unseen == without_socket) << unseen;
  return unseen;
}

std::vector<Json> expect_sums_of_namespace(const Observed& seen, std::uint64_t without_socket = 0,
                                           std::size_t tool = 0) {
  auto rows = own(seen, tool);
  expect_sums(rows, seen.truth,
              {"retransmits", "active_opens", "passive_opens", "failed", "established_resets",
               "out_of_order"});
  auto unseen = unseen_resets(rows, seen, without_socket);
  EXPECT_EQ(sum(rows, "segments_in") + unseen, seen.number("segments_in"));
  EXPECT_EQ(sum(rows, "segments_out") + unseen, seen.number("segments_out"));
  return rows;
}

TOOL_TEST(Protostat, SumsAreThoseOfTheNamespace) {
  auto seen =
      watch({kTool, "protostat --json --by comm,netns 100", "protostat --json -p {server_pid} 100"},
            "netcounts --sessions 5 --resets 2 --refused 3 --again 2");
  auto rows = expect_sums_of_namespace(seen, 5);
  auto client = line_with(rows, {{"pid", seen.pid}}),
       server = line_with(rows, {{"pid", seen.number("server_pid")}});
  expect_fields(client, {{"comm", "netcounts"},
                         {"uid", 0},
                         {"active_opens", 12},
                         {"passive_opens", 0},
                         {"failed", 5},
                         {"established_resets", 2},
                         {"data_segments_out", 21},
                         {"data_segments_in", 21},
                         {"resets_in", 5},
                         {"resets_out", 2}});
  expect_fields(server, {{"active_opens", 0},
                         {"passive_opens", 7},
                         {"failed", 0},
                         {"established_resets", 2},
                         {"resets_in", 2},
                         {"resets_out", 0}});
  // The resets of a port without a listener have no owner.
  for (auto& row : lines_with(rows, {{"pid", nullptr}})) {
    expect_fields(row, {{"comm", nullptr}, {"active_opens", 0}});
    expect_same(row, row, {{"segments_in", "resets_out"}, {"segments_out", "resets_out"}});
  }

  auto by_comm = own(seen, 1);
  expect_sums(by_comm, seen.truth, {"active_opens", "passive_opens"});
  EXPECT_EQ(lines_with(by_comm, {{"comm", "netcounts"}}).size(), 1u);
  auto filtered = seen.body(2);
  ASSERT_EQ(filtered.size(), 1u);
  expect_same(filtered[0], server, {"pid", "segments_in", "segments_out", "passive_opens"});
  EXPECT_GE(seen.report(2).lost("filtered"), client["segments_in"].u64());
}

TOOL_TEST(Protostat, SocketsThatStayOpen) {
  auto seen = watch_open({kTool}, "netcounts --sessions 2 --open");
  auto rows = expect_sums_of_namespace(seen);
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(line_with(rows, {{"pid", seen.pid}})["active_opens"].u64(), 2u);
  EXPECT_EQ(line_with(rows, {{"pid", seen.number("server_pid")}})["passive_opens"].u64(), 2u);
}

TOOL_TEST(Protostat, OlderConnections) {
  auto seen = watch({kTool}, "netcounts --sessions 2 --older");
  auto rows = expect_sums_of_namespace(seen);
  EXPECT_EQ(sum(rows, "active_opens"), 1u);
}

// The process that accepts a connection keeps nothing of it.
TOOL_TEST(Protostat, ConnectionsThatAreHandedOn) {
  auto seen = watch({kTool}, "netcounts --sessions 3 --handed");
  auto rows = expect_sums_of_namespace(seen);
  EXPECT_EQ(lines_with(rows, {{"pid", seen.number("server_pid")}}).size(), 0u);
  EXPECT_EQ(rows.size(), 4u);
}

// At each report: what is counted once is not counted again.
TOOL_TEST(Protostat, Intervals) {
  auto seen = watch({"protostat --json --strict --netns {netns} 0.1"},
                    "netcounts --sessions 40 --messages 20 --resets 10");
  expect_sums_of_namespace(seen);
}

TOOL_TEST(Protostat, Datagrams) {
  auto seen = watch_open({"protostat --json --strict --udp --netns {netns} 100", kTool},
                         "netcounts --sessions 0 --datagrams 20 --surplus 7");
  auto row = only(own(seen));
  expect_fields(row, seen.filled("pid {pid} comm netcounts"));
  expect_same(row, seen.truth, {"datagrams_in", "datagrams_out", "udp_drops"});
  EXPECT_GE(row["udp_drops"].u64(), 7u);
  expect_fields(only(own(seen, 1)), {{"datagrams_in", 0}, {"udp_drops", row["udp_drops"].u64()}});
}

TOOL_TEST(Protostat, FullQueues) {
  auto seen = watch_open({kTool}, "netcounts --sessions 0 --overflow 3");
  auto row = line_with(own(seen), {{"pid", seen.pid}});
  // Their SYNs are sent again after the count.
  EXPECT_GE(row["listen_drops"].u64(), seen.number("listen_drops"));
  EXPECT_LE(row["listen_drops"].u64(), 4 * seen.number("listen_drops"));
}

TOOL_TEST(Protostat, Causes) {
  auto [hole, lost, handshake] = watch_each({{"tcp --sessions 1 --hole", {kTool}},
                                             {"tcp --sessions 1 --lost 3", {kTool}},
                                             {"tcp --handshake", {kTool}}});
  expect_sums(own(hole), hole.truth, {"retransmits", {"rack", "fast_retransmits"}});
  expect_sums(own(lost), lost.truth, {"retransmits"});
  auto client = line_with(own(lost), {{"pid", lost.pid}});
  expect_fields(client, {{"loss_probes", 1}, {"fast", 0}, {"rack", 0}});
  EXPECT_EQ(client["timeouts"].u64() + 1, client["retransmits"].u64());
  expect_sums(own(handshake), handshake.truth, {"retransmits"});
  EXPECT_GE(sum(own(handshake), "syn_acks"), 1u);
}

TOOL_TEST(Protostat, Text) {
  auto seen = watch({"protostat --netns {netns} 100", "protostat -w --udp --netns {netns} 100"},
                    "netcounts --sessions 1 --messages 1");
  auto shown = lines(seen.text()), wide = lines(seen.text(1));
  expect_row(shown.at(1),
             "PID COMM SEGS-IN SEGS-OUT RETRANS TIMEOUT FAST RACK PROBE OOO ACTIVE PASSIVE FAILED "
             "BROKEN RST-IN RST-OUT LDROPS DROPS UDROPS");
  expect_row(wide.at(1),
             "PID COMM SEGS-IN SEGS-OUT DATA-IN DATA-OUT RETRANS TIMEOUT FAST RACK PROBE SYN-ACK "
             "OTHER DSACK OOO REORD ACTIVE PASSIVE FAILED BROKEN RST-IN RST-OUT LDROPS DROPS "
             "UDP-IN UDP-OUT UDROPS");
}

TESTS_OF(protostat, .events = {{}, "netcounts --sessions 1"},
         .stress = count_row("netcounts --sessions {n/10}", 1500,
                             "segments_in+segments_out+active_opens+passive_opens",
                             "segments_in+segments_out+active_opens+passive_opens", {},
                             "pid server_pid"));

}  // namespace
}  // namespace coretap::tooltest
