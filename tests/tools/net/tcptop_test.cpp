// tcptop against connections of a network namespace of our own: what each call moved is known.
#include <sstream>

#include "messages.hpp"

namespace coretap::tooltest {
namespace {

struct Sums {
  std::uint64_t sends = 0, receives = 0, tx = 0, rx = 0;
};

Sums of(const Report& report, std::uint64_t pid) {
  Sums all;
  for (auto& line : report.of_process(pid)) {
    all.sends += line["sends"].u64();
    all.receives += line["receives"].u64();
    all.tx += line["tx_bytes"].u64();
    all.rx += line["rx_bytes"].u64();
  }
  return all;
}

void expect_truth(const Strings& options) {
  require_tool("tcptop");
  SCOPED_TRACE(options.empty() ? "" : options[0] + options.back());
  Messages pair(options);
  Tracer tracer("tcptop", {"--json", "--strict", "--netns", pair.id(), "10"});
  pair.release();
  auto truth = pair.truth();
  auto report = tracer.stop();
  if (options.back() == "splice" && !report.header["limits"].items().empty())
    throw Skip("splices from sockets are not seen here");
  auto writer = of(report, static_cast<std::uint64_t>(pair.pid())),
       reader = of(report, pair.reader);
  EXPECT_EQ(writer.sends, truth["sends"].u64());
  EXPECT_EQ(writer.tx, truth["sent"].u64());
  EXPECT_EQ(writer.receives, 0u);
  EXPECT_EQ(writer.rx, 0u);
  EXPECT_EQ(reader.receives, truth["receives"].u64());
  EXPECT_EQ(reader.rx, truth["received"].u64());
  EXPECT_EQ(reader.sends, 0u);
  EXPECT_EQ(reader.tx, 0u);
}

TOOL_TEST(Tcptop, BytesThatWereMoved) { expect_truth({"--messages", "50", "--fail"}); }
TOOL_TEST(Tcptop, BytesThatAreNotReceived) { expect_truth({"--keep", "5000"}); }
TOOL_TEST(Tcptop, Ipv6) { expect_truth({"--size", "30000", "--fail", "--family", "6"}); }
TOOL_TEST(Tcptop, PeeksDoNotCount) { expect_truth({"--size", "500", "--peek"}); }
TOOL_TEST(Tcptop, OneReceiveThatWaits) {
  expect_truth({"--size", "40000", "--pieces", "2", "--take", "waitall"});
}
TOOL_TEST(Tcptop, Sendfile) { expect_truth({"--size", "4096", "--way", "sendfile"}); }
TOOL_TEST(Tcptop, Splice) { expect_truth({"--size", "3000", "--take", "splice"}); }

TOOL_TEST(Tcptop, ARowForEachEnd) {
  require_tool("tcptop");
  Messages pair({"--messages", "3"});
  Tracer tracer("tcptop", {"--json", "--strict", "--netns", pair.id(), "10"});
  pair.release();
  auto truth = pair.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 2u);
  for (auto& line : report.body) {
    bool writer = line["pid"].u64() == static_cast<std::uint64_t>(pair.pid());
    EXPECT_EQ(line["comm"].str(), "tcpio");
    EXPECT_EQ(line["uid"].u64(), 0u);
    EXPECT_EQ(line["ip"].u64(), 4u);
    EXPECT_EQ(line["netns"].u64(), pair.netns);
    EXPECT_EQ(line["local_address"].str(), "127.0.0.1");
    EXPECT_EQ(line["remote_address"].str(), "127.0.0.1");
    EXPECT_EQ(line["local_port"].u64(), writer ? truth["port"].u64() : pair.port);
    EXPECT_EQ(line["remote_port"].u64(), writer ? pair.port : truth["port"].u64());
    EXPECT_EQ(line["total_bytes"].u64(), 3000u);
  }
}

TOOL_TEST(Tcptop, Filters) {
  require_tool("tcptop");
  Messages four({}), six({"--family", "6"});
  auto trace = [](Strings options) {
    options.insert(options.begin(), {"--json", "10"});
    return std::make_unique<Tracer>("tcptop", options);
  };
  auto own = trace({"-p", four.id()}), version = trace({"-6", "--netns", six.id()});
  auto port = trace({"-L", std::to_string(four.port), "--netns", four.id()});
  auto none = trace({"--comm", "tcpio", "--not-pid", four.id() + "," + six.id(), "-D", "1"});
  for (auto* pair : {&four, &six}) {
    pair->release();
    pair->truth();
  }
  auto of_own = own->stop(), of_six = version->stop(), at_port = port->stop();
  ASSERT_EQ(of_own.body.size(), 1u);
  EXPECT_EQ(of_own.sum("tx_bytes"), 10'000u);
  EXPECT_GE(of_own.lost("filtered"), 30u);
  EXPECT_EQ(of_six.body.size(), 2u);
  for (auto& line : of_six.body) EXPECT_EQ(line["local_address"].str(), "::1");
  ASSERT_EQ(at_port.body.size(), 1u);
  EXPECT_EQ(at_port.body[0]["pid"].u64(), four.reader);
  EXPECT_EQ(none->stop().body.size(), 0u);
}

TOOL_TEST(Tcptop, BlocksHaveTheKnownColumns) {
  require_tool("tcptop");
  Messages pair({"--messages", "2", "--size", "4096"});
  Tracer with("tcptop", {"-p", pair.id(), "10"}), without("tcptop", {"-S", "-p", pair.id(), "10"});
  pair.release();
  auto truth = pair.truth();
  auto text = with.stop_text(), bare = without.stop_text();
  EXPECT_TRUE(contains(text, " loadavg: ")) << text;
  EXPECT_FALSE(contains(bare, "loadavg")) << bare;
  std::istringstream lines(bare);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"PID", "COMM", "LADDR", "RADDR", "RX_KB", "TX_KB"}));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line),
            (Strings{pair.id(), "tcpio", "127.0.0.1:" + std::to_string(truth["port"].u64()),
                     "127.0.0.1:" + std::to_string(pair.port), "0", "8"}));
}

TOOL_TEST(Tcptop, SortsByTheWordsOfPeers) {
  require_tool("tcptop");
  for (auto* word : {"all", "sent", "received"}) {
    Messages pair({"--messages", "2", "--keep", "100"});
    Tracer tracer("tcptop", {"--csv", "-s", word, "--netns", pair.id(), "10"});
    pair.release();
    pair.truth();
    auto text = tracer.stop_text();
    auto first = text.find('\n') + 1;
    auto writer = text.find("," + pair.id() + ",", first);
    auto reader = text.find("," + std::to_string(pair.reader) + ",", first);
    ASSERT_NE(writer, text.npos) << text;
    ASSERT_NE(reader, text.npos) << text;
    EXPECT_EQ(writer < reader, std::string(word) != "received") << text;
  }
  EXPECT_EQ(run({tool_path("tcptop"), "-s", "nothing"}).status, 2);
}

const DeclareTests kTcptop{{
    .name = "tcptop",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "tcpio"},
    .stress = {.workload = "tcpio --messages {n/2}",
               .events = 1500,
               .shown = "sends+receives",
               .truth = "calls",
               .tiny = "--max-keys 1",
               .pids = "pid reader_pid"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
