// tcpsubnet against known messages to loopback addresses.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

using Numbers = std::map<std::string, std::uint64_t>;

/// Bytes sent by subnet, to two pairs: 10,000 bytes over IPv4 and 5,000 over IPv6.
struct Sent {
  Numbers bytes, sends;
  Report report;
};

Sent sent(const std::string& options) {
  auto seen = watch_all(
      {{"tcpio --messages 10 --fail", {"tcpsubnet --json --strict -p {0},{1} " + options}},
       {"tcpio --messages 5 --family 6"}},
      {});
  Sent all{{}, {}, seen[0].report()};
  for (auto& line : all.report.body) {
    all.bytes[line["subnet"].str()] += line["tx_bytes"].u64();
    all.sends[line["subnet"].str()] += line["sends"].u64();
  }
  return all;
}

// The default subnets contain this machine's addresses; those of one IP version not the other's.
TOOL_TEST(Tcpsubnet, SubnetsAndFilters) {
  const Numbers four{{"127.0.0.1/32", 10'000}}, six{{"::1/128", 5'000}};
  EXPECT_EQ(sent("-4").bytes, four);
  EXPECT_EQ(sent("-6").bytes, six);
  EXPECT_EQ(sent("::/0").bytes, (Numbers{{"::/0", 5'000}}));
  EXPECT_EQ(sent("0.0.0.0/0").bytes, (Numbers{{"0.0.0.0/0", 10'000}}));
  EXPECT_EQ(sent("10.0.0.0/8,128.0.0.0/1").bytes, Numbers{});
  EXPECT_EQ(sent("-D 1").bytes, Numbers{});
  auto all = sent("");
  EXPECT_EQ(all.bytes, (Numbers{{"127.0.0.1/32", 10'000}, {"::1/128", 5'000}}));
  EXPECT_EQ(all.sends, (Numbers{{"127.0.0.1/32", 10}, {"::1/128", 5}}));
}

TOOL_TEST(Tcpsubnet, TheSmallestSubnetCounts) {
  auto all = sent("0.0.0.0/0,127.0.0.0/8,::/0 60");
  EXPECT_EQ(all.bytes, (Numbers{{"127.0.0.0/8", 10'000}, {"::/0", 5'000}}));
  expect_contains(all.report.err, {"127.0.0.0/8 is inside 0.0.0.0/0"});
  auto ordered = sent("127.0.0.0/8,0.0.0.0/0 60");
  EXPECT_FALSE(contains(ordered.report.err, "inside")) << ordered.report.err;
  EXPECT_EQ(ordered.bytes, (Numbers{{"127.0.0.0/8", 10'000}}));
  EXPECT_GE(ordered.report.lost("filtered"), 5u);  // no subnet contains IPv6
}

TOOL_TEST(Tcpsubnet, Units) {
  const std::pair<std::string, std::string> units[] = {{"B", "40960"},  {"K", "40"},  {"M", "0"},
                                                       {"b", "327680"}, {"k", "320"}, {"m", "0"}};
  for (auto& [unit, amount] : units) {
    SCOPED_TRACE(unit);
    auto seen =
        watch({"tcpsubnet -p {pid} 127.0.0.1/32 60 -f " + unit}, "tcpio --messages 10 --size 4096");
    expect_row(lines(seen.text()).at(2), "127.0.0.1/32 " + amount + " 10");
  }
}

TOOL_TEST(Tcpsubnet, MoreThanThereIsRoomFor) {
  std::string many = "10.0.0.0/24";
  for (int i = 1; i < 65; i++) many += ",10.0." + std::to_string(i) + ".0/24";
  expect_refused("tcpsubnet " + many);
}

TESTS_OF(tcpsubnet, .events = {{}, "tcpio"},
         .stress = total_row("tcpio --messages {n}", 1000, "sends", "sends"),
         .long_run = {{.arguments = {"127.0.0.0/8,0.0.0.0/0", "10"}}});

}  // namespace
}  // namespace coretap::tooltest
