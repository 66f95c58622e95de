// netqtop against packets on known queues, and against the kernel's own counters.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kLinkHeader = 14;  // of the loopback

/// Packets in the workload's network namespace.
Observed see(const Strings& arguments, const Strings& options = {}) {
  return watch({"netqtop --json --strict --netns {pid} 60" + options}, "queues" + arguments);
}

/// The row of an interface, a direction and a queue; empty if there were no packets.
std::vector<Json> row(const Observed& seen, const std::string& interface, const char* direction,
                      std::uint64_t queue) {
  auto rows =
      lines_with(seen.body(),
                 {{"interface_name", interface}, {"direction", direction}, {"queue_index", queue}});
  EXPECT_LE(rows.size(), 1u);
  return rows;
}

TOOL_TEST(Netqtop, PacketsOfEachQueue) {
  // 300 of 400 use one of four queues.
  for (auto& [options, imbalance] : {std::pair{"", 3.0}, {" --even", 1.0}}) {
    auto seen = see(std::string("--packets 400 --size 100") + options);
    auto by = seen.truth["by_queue"].items();
    for (std::size_t i = 0; i < by.size(); i++) {
      SCOPED_TRACE(std::to_string(i) + options);
      auto packets = by[i].u64();
      auto rows = row(seen, "many0", "RX", i);
      EXPECT_EQ(sum(rows, "packets"), packets);
      EXPECT_EQ(sum(rows, "bytes"), 100 * packets);
      EXPECT_EQ(sum(rows, "size_64_511"), packets);
      if (!packets) continue;
      expect_fields(rows.at(0), {{"queues", by.size()}, {"average_bytes", 100}});
      EXPECT_NEAR(rows[0]["share_ratio"].real(), static_cast<double>(packets) / 400, 1e-6);
      EXPECT_NEAR(rows[0]["imbalance_ratio"].real(), imbalance, 1e-6);
    }
  }
}

TOOL_TEST(Netqtop, SortsByImbalance) {
  auto first = [](const Strings& options) {
    return see("--packets 4 --datagrams 50", options).body().at(0)["interface_name"].str();
  };
  EXPECT_EQ(first({}), "lo");
  EXPECT_EQ(first("-s imbalance_ratio"), "many0");
}

TOOL_TEST(Netqtop, Sizes) {
  const std::pair<std::uint64_t, const char*> sizes[] = {{40, "size_0_63"},
                                                         {64, "size_64_511"},
                                                         {512, "size_512_2047"},
                                                         {2048, "size_2048_16383"},
                                                         {20000, "size_16384_65535"}};
  for (auto& [size, key] : sizes) {
    auto seen = see("--packets 4 --datagrams 0 --size " + std::to_string(size));
    EXPECT_EQ(sum(row(seen, "many0", "RX", 2), key), 3u) << size;
    EXPECT_EQ(sum(row(seen, "many0", "RX", 2), "bytes"), 3 * size);
  }
}

TOOL_TEST(Netqtop, AsTheKernelCounts) {
  auto seen = see("--packets 0 --datagrams 50");
  auto received = seen.number("lo_received");
  ASSERT_GE(received, 50u);
  auto bytes = seen.number("lo_received_bytes") + kLinkHeader * received;
  for (auto& [direction, packets] : {std::pair{"TX", seen.number("lo_sent")}, {"RX", received}})
    expect_fields(row(seen, "lo", direction, 0).at(0), {{"packets", packets}, {"bytes", bytes}});
}

TOOL_TEST(Netqtop, OneInterfaceAndText) {
  auto seen = watch(
      {"netqtop --json --strict --netns {pid} 60 -n lo", "netqtop -t -n many0 --netns {pid} 60"},
      "queues --packets 4 --size 1000");
  EXPECT_EQ(seen.shown(0), 2u);
  EXPECT_GE(seen.report().lost("filtered"), 4u);
  auto rows = lines(seen.text(1));
  EXPECT_TRUE(contains(rows.at(0), " loadavg: ")) << rows[0];
  expect_row(rows.at(2), "many0 RX 2 1000 0 0 3 0 0 3 * * 75.00 3.00");
  expect_refused("netqtop -n none0");
}

TOOL_TEST(Netqtop, WhatAProcessWrites) {
  auto [own, other] = watch_each(
      {{"queues --datagrams 0", {"netqtop --json --strict -p {pid} 60"}}, {"queues"}}, {});
  expect_sums(own.report(), own.truth, {"packets"});
}

TESTS_OF(netqtop, .events = {{}, "tcpio"},
         .stress = count_row("queues --packets {n} --datagrams 0", 2000, "packets", "packets"));

}  // namespace
}  // namespace coretap::tooltest
