// tcpcong against connections that are known to wait for a timeout, in the state loss.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t in_all(const std::vector<Json>& rows) {
  std::uint64_t all = 0;
  for (auto* key : {"open_ns", "disorder_ns", "cwr_ns", "recovery_ns", "loss_ns"})
    all += sum(rows, key);
  return all;
}
/// Lines of the client's end.
std::vector<Json> of_client(const Observed& seen, std::size_t tool) {
  return lines_with(own(seen, tool), {{"remote_port", seen.number("server_port")}});
}

void expect_loss(const std::string& options, const Family& family) {
  auto seen = watch(
      {"tcpcong --json --strict --netns {pid}", "tcpcong --json -p {pid}", "tcpcong --json -R 1"},
      options, family);
  auto row = only(of_client(seen, 0));
  expect_fields(row, seen.filled(family.ends() + "local_port {client_ports}"));
  EXPECT_GE(row["changes"].u64(), 2u);
  // Some algorithms have no threshold.
  auto threshold = seen.number("ssthresh");
  expect_fields(row, {{"algorithm", seen.truth["algorithm"].str()},
                      {"ssthresh_packets", or_null(threshold < 0x7fffffff, threshold)}});
  EXPECT_GE(row["cwnd_packets"].u64(), 1u);
  // From the timeout, which is before the last lost retransmission is counted, until the
  // acknowledgement, which is before the answer.
  EXPECT_GE(row["loss_ns"].u64(), seen.number("hole_ns") * 9 / 10);
  EXPECT_LE(in_all({row}), seen.number("session_ns"));
  EXPECT_GE(in_all({row}), seen.number("session_ns") * 9 / 10);
  EXPECT_GT(row["open_ns"].u64(), 0u);
  expect_same(only(of_client(seen, 1)), row, {"changes"});
  EXPECT_EQ(own(seen, 2).size(), 0u);
}

TOOL_TEST(Tcpcong, Loss) { expect_loss("--sessions 1 --lost 3 --congestion reno", kFour); }
TOOL_TEST(Tcpcong, LossIpv6) { expect_loss("--sessions 1 --lost 2", kSix); }

// A state that spans the end of an interval counts in both, and in total for its duration.
TOOL_TEST(Tcpcong, IntervalsDistributionsAndText) {
  const std::string tool = "tcpcong --json --strict --netns {pid}";
  auto seen = watch({tool, tool + " 0.1", "tcpcong --json -d --netns {pid} -R {server_port}",
                     "tcpcong -d -u -p {pid}", "tcpcong -p {pid}", "tcpcong -u -p {pid}"},
                    "tcp --sessions 1 --lost 4");
  auto at_once = of_client(seen, 0), parts = of_client(seen, 1);
  ASSERT_EQ(at_once.size(), 1u);
  EXPECT_TRUE(std::ranges::any_of(
      parts, [](auto& row) { return row["changes"].u64() == 0 && row["loss_ns"].u64() > 0; }));
  EXPECT_EQ(sum(parts, "changes"), sum(at_once, "changes"));
  auto near = [](std::uint64_t a, std::uint64_t b) { EXPECT_NEAR(a, b, 1e6 + 0.01 * b); };
  near(in_all(parts), in_all(at_once));
  near(sum(parts, "loss_ns"), sum(at_once, "loss_ns"));

  auto loss = only(lines_with(seen.body(2), {{"congestion_state", "loss"}}));
  expect_fields(loss, {{"count", 1}});
  EXPECT_GE(loss["total_ns"].u64(), seen.number("hole_ns") * 9 / 10);
  EXPECT_LE(sum(seen.body(2), "total_ns"), seen.number("session_ns"));
  expect_contains(seen.text(3), {"state = loss", "usecs"});

  double ms = 0;
  for (std::string unit : {"ms", "us"}) {
    auto rows = lines(seen.text(unit == "ms" ? 4 : 5));
    while (rows.at(0).empty()) rows.erase(rows.begin());
    expect_row(rows[0],
               std::regex_replace(
                   "LAddrPort RAddrPort Open_@ Dod_@ Rcov_@ Cwr_@ Los_@ Chgs Cwnd Ssthr Algorithm",
                   std::regex("@"), unit));
    expect_row(rows.at(1),
               seen.filled("127.0.0.1:{client_ports} 127.0.0.1:{server_port} * * * * * * * * *"));
    auto lost = std::stod(words(rows[1]).at(6));
    if (unit == "ms") {
      ms = lost;
    } else {
      EXPECT_NEAR(lost / 1000, ms, 1 + ms / 100);
    }
  }
}

TESTS_OF(tcpcong, .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"-d"}}},
         .events = {"-w", "tcp --sessions 1 --lost 2"}, .nothing_when_idle = true,
         .stress = count_row("tcp --sessions {n} --lost 1 --client-bytes 10 --server-bytes 10", 4,
                             "changes", for_each_client(2)));

}  // namespace
}  // namespace coretap::tooltest
