// netqtop against packets that come by known queues, and against the kernel's own counters.
#include <map>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kInterface[] = "many0";
constexpr std::uint64_t kLinkHeader = 14;  // of the loopback

struct Seen {
  Json truth;
  Report report;
  /// By interface, direction and queue.
  std::map<std::string, Json> rows;
};

/// Of packets in the workload's network namespace.
Seen see(const Strings& arguments, Strings options = {}) {
  require_tool("netqtop");
  Workload workload("queues", arguments);
  options.insert(options.begin(), {"--json", "--strict", "--netns", workload.id(), "60"});
  Tracer tracer("netqtop", options);
  workload.release();
  Seen seen{workload.truth(), tracer.stop(), {}};
  for (auto& line : seen.report.body)
    seen.rows.emplace(line["interface_name"].str() + " " + line["direction"].str() + " " +
                          std::to_string(line["queue_index"].u64()),
                      line);
  return seen;
}

std::uint64_t number(const Seen& seen, const std::string& row, const char* key) {
  auto found = seen.rows.find(row);
  return found == seen.rows.end() ? 0 : found->second[key].u64();
}

TOOL_TEST(Netqtop, PacketsOfEachQueue) {
  auto seen = see({"--packets", "400", "--size", "100"});
  auto by = seen.truth["by_queue"].items();
  for (std::size_t i = 0; i < by.size(); i++) {
    auto row = std::string(kInterface) + " RX " + std::to_string(i);
    EXPECT_EQ(number(seen, row, "packets"), by[i].u64()) << row;
    EXPECT_EQ(number(seen, row, "bytes"), 100 * by[i].u64()) << row;
    EXPECT_EQ(number(seen, row, "size_64_511"), by[i].u64()) << row;
    if (!by[i].u64()) continue;
    auto& line = seen.rows.at(row);
    EXPECT_EQ(line["queues"].u64(), by.size());
    EXPECT_EQ(line["average_bytes"].u64(), 100u);
    EXPECT_NEAR(line["share_ratio"].real(), static_cast<double>(by[i].u64()) / 400, 1e-6);
    EXPECT_NEAR(line["imbalance_ratio"].real(), 3.0, 1e-6);  // 300 of 400, by one of four
  }
}

TOOL_TEST(Netqtop, EvenQueuesAreBalanced) {
  auto seen = see({"--packets", "400", "--even"});
  for (int i = 0; i < 4; i++) {
    auto& line = seen.rows.at(std::string(kInterface) + " RX " + std::to_string(i));
    EXPECT_NEAR(line["share_ratio"].real(), 0.25, 1e-6);
    EXPECT_NEAR(line["imbalance_ratio"].real(), 1.0, 1e-6);
  }
}

TOOL_TEST(Netqtop, SortsByImbalance) {
  const Strings many = {"--packets", "4", "--datagrams", "50"};
  auto by_packets = see(many), by_imbalance = see(many, {"-s", "imbalance_ratio"});
  ASSERT_FALSE(by_packets.report.body.empty());
  ASSERT_FALSE(by_imbalance.report.body.empty());
  EXPECT_EQ(by_packets.report.body[0]["interface_name"].str(), "lo");
  EXPECT_EQ(by_imbalance.report.body[0]["interface_name"].str(), kInterface);
}

TOOL_TEST(Netqtop, Sizes) {
  const std::pair<const char*, const char*> sizes[] = {{"40", "size_0_63"},
                                                       {"64", "size_64_511"},
                                                       {"512", "size_512_2047"},
                                                       {"2048", "size_2048_16383"},
                                                       {"20000", "size_16384_65535"}};
  for (auto& [size, key] : sizes) {
    auto seen = see({"--packets", "4", "--size", size, "--datagrams", "0"});
    EXPECT_EQ(number(seen, "many0 RX 2", key), 3u) << size;
    EXPECT_EQ(number(seen, "many0 RX 2", "bytes"), 3 * std::stoul(size));
  }
}

TOOL_TEST(Netqtop, AsTheKernelCounts) {
  auto seen = see({"--packets", "0", "--datagrams", "50"});
  auto sent = seen.truth["lo_sent"].u64(), received = seen.truth["lo_received"].u64();
  ASSERT_GE(received, 50u);
  EXPECT_EQ(number(seen, "lo TX 0", "packets"), sent);
  EXPECT_EQ(number(seen, "lo RX 0", "packets"), received);
  auto bytes = seen.truth["lo_received_bytes"].u64() + kLinkHeader * received;
  EXPECT_EQ(number(seen, "lo TX 0", "bytes"), bytes);
  EXPECT_EQ(number(seen, "lo RX 0", "bytes"), bytes);
}

TOOL_TEST(Netqtop, OneInterface) {
  auto seen = see({}, {"-n", "lo"});
  EXPECT_EQ(seen.rows.size(), 2u);
  EXPECT_GE(seen.report.lost("filtered"), 40u);
  EXPECT_EQ(run({tool_path("netqtop"), "-n", "none0"}).status, 2);
  EXPECT_EQ(run({tool_path("netqtop"), "-n", "a-name-that-is-too-long"}).status, 2);
}

TOOL_TEST(Netqtop, WhatAProcessWrites) {
  require_tool("netqtop");
  Workload workload("queues", {"--datagrams", "0"}), other("queues", {});
  Tracer tracer("netqtop", {"--json", "--strict", "-p", workload.id(), "60"});
  workload.release();
  other.release();
  auto truth = workload.truth();
  other.truth();
  EXPECT_EQ(tracer.stop().sum("packets"), truth["packets"].u64());
}

TOOL_TEST(Netqtop, Text) {
  require_tool("netqtop");
  Workload workload("queues", {"--packets", "4", "--size", "1000"});
  Tracer tracer("netqtop", {"-t", "-n", kInterface, "--netns", workload.id(), "60"});
  workload.release();
  workload.truth();
  std::istringstream lines(tracer.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(contains(line, " loadavg: ")) << line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line),
            (Strings{"IFACE", "DIR", "QUEUE", "AVG_SIZE", "[0,64)", "[64,512)", "[512,2K)",
                     "[2K,16K)", "[16K,64K)", "PACKETS", "BPS", "PPS", "SHARE", "MAX/MEAN"}));
  ASSERT_TRUE(std::getline(lines, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 14u) << line;
  EXPECT_EQ(Strings(cells.begin(), cells.begin() + 10),
            (Strings{kInterface, "RX", "2", "1000", "0", "0", "3", "0", "0", "3"}));
  EXPECT_EQ(cells[12], "75.00%");
  EXPECT_EQ(cells[13], "300.00%");
}

const DeclareTests kNetqtop{{
    .name = "netqtop",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "tcpio"},
    .stress = {.workload = "queues --packets {n} --datagrams 0",
               .events = 2000,
               .shown = "packets",
               .truth = "packets",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
