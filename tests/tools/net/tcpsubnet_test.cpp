// tcpsubnet against known messages to loopback addresses.
#include <sstream>

#include "messages.hpp"

namespace coretap::tooltest {
namespace {

/// Bytes sent by subnet, to two pairs: 10,000 bytes over IPv4 and 5,000 over IPv6.
struct Sent {
  std::map<std::string, std::uint64_t> bytes, sends;
  Report report;
};

Sent sent(Strings options) {
  require_tool("tcpsubnet");
  Messages four({"--messages", "10", "--fail"}), six({"--messages", "5", "--family", "6"});
  options.insert(options.begin(), {"--json", "--strict", "-p", four.id() + "," + six.id()});
  Tracer tracer("tcpsubnet", options);
  four.release();
  six.release();
  four.truth();
  six.truth();
  Sent all{{}, {}, tracer.stop()};
  for (auto& line : all.report.body) {
    all.bytes[line["subnet"].str()] += line["tx_bytes"].u64();
    all.sends[line["subnet"].str()] += line["sends"].u64();
  }
  return all;
}

using Bytes = std::map<std::string, std::uint64_t>;

TOOL_TEST(Tcpsubnet, UsualSubnets) {
  auto all = sent({});
  EXPECT_EQ(all.bytes, (Bytes{{"127.0.0.1/32", 10'000}, {"::1/128", 5'000}}));
  EXPECT_EQ(all.sends, (Bytes{{"127.0.0.1/32", 10}, {"::1/128", 5}}));
}

TOOL_TEST(Tcpsubnet, TheSmallestSubnetCounts) {
  auto all = sent({"0.0.0.0/0,127.0.0.0/8,::/0", "60"});
  EXPECT_EQ(all.bytes, (Bytes{{"127.0.0.0/8", 10'000}, {"::/0", 5'000}}));
  EXPECT_TRUE(contains(all.report.err, "127.0.0.0/8 is inside 0.0.0.0/0")) << all.report.err;
  auto ordered = sent({"127.0.0.0/8,0.0.0.0/0", "60"});
  EXPECT_FALSE(contains(ordered.report.err, "inside")) << ordered.report.err;
  EXPECT_EQ(ordered.bytes, (Bytes{{"127.0.0.0/8", 10'000}}));
  EXPECT_GE(ordered.report.lost("filtered"), 5u);  // IPv6 is in none
}

TOOL_TEST(Tcpsubnet, OneVersionDoesNotHoldTheOther) {
  EXPECT_EQ(sent({"::/0"}).bytes, (Bytes{{"::/0", 5'000}}));
  EXPECT_EQ(sent({"0.0.0.0/0"}).bytes, (Bytes{{"0.0.0.0/0", 10'000}}));
  EXPECT_EQ(sent({"10.0.0.0/8,128.0.0.0/1"}).bytes, Bytes{});
}

TOOL_TEST(Tcpsubnet, Filters) {
  EXPECT_EQ(sent({"-4"}).bytes, (Bytes{{"127.0.0.1/32", 10'000}}));
  EXPECT_EQ(sent({"-6"}).bytes, (Bytes{{"::1/128", 5'000}}));
  EXPECT_EQ(sent({"-D", "1"}).bytes, Bytes{});
}

TOOL_TEST(Tcpsubnet, Units) {
  require_tool("tcpsubnet");
  const std::pair<const char*, const char*> units[] = {{"B", "40960"},  {"K", "40"},  {"M", "0"},
                                                       {"b", "327680"}, {"k", "320"}, {"m", "0"}};
  for (auto& [unit, amount] : units) {
    SCOPED_TRACE(unit);
    Messages pair({"--messages", "10", "--size", "4096"});
    Tracer tracer("tcpsubnet", {"-f", unit, "-p", pair.id(), "127.0.0.1/32", "60"});
    pair.release();
    pair.truth();
    std::istringstream lines(tracer.stop_text());
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(words(line), (Strings{"SUBNET", "SENT", "SENDS"}));
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(words(line), (Strings{"127.0.0.1/32", amount, "10"}));
  }
}

TOOL_TEST(Tcpsubnet, BadSubnets) {
  Strings many;
  for (int i = 0; i < 65; i++) many.push_back("10.0." + std::to_string(i) + ".0/24");
  std::string list = many[0];
  for (std::size_t i = 1; i < many.size(); i++) list += "," + many[i];
  for (auto& wrong : std::vector<Strings>{{"10.0.0.0/33"},
                                          {"10.0.0/8"},
                                          {"10.0.0.0/8,10.0.0.0/8"},
                                          {"10.0.0.0/8,"},
                                          {"5"},
                                          {list},
                                          {"-f", "x"}}) {
    SCOPED_TRACE(wrong.back());
    auto words = wrong;
    words.insert(words.begin(), tool_path("tcpsubnet"));
    EXPECT_EQ(run(words).status, 2);
  }
}

const DeclareTests kTcpsubnet{{
    .name = "tcpsubnet",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "tcpio"},
    .stress =
        {.workload = "tcpio --messages {n}", .events = 1000, .shown = "sends", .truth = "sends"},
    .long_run = {{.arguments = {"127.0.0.0/8,0.0.0.0/0", "10"}}},
}};

}  // namespace
}  // namespace coretap::tooltest
