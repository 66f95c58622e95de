// tcppktlat against a reader that lets messages wait, and says for how long at least and at most.
#include <map>
#include <sstream>
#include <string>

#include "messages.hpp"

namespace coretap::tooltest {
namespace {

struct Seen {
  Report report;
  Json truth;
  std::vector<Json> lines;  ///< of the reader
};

Seen trace(Messages& pair, Strings options) {
  options.insert(options.begin(), {"--json", "--netns", pair.id()});
  Tracer tracer("tcppktlat", options);
  pair.release();
  auto truth = pair.truth();
  Seen seen{tracer.stop(), std::move(truth), {}};
  for (auto& line : seen.report.body)
    if (line["type"].str() == "event" && line["pid"].u64() == pair.reader)
      seen.lines.push_back(line);
  return seen;
}

TOOL_TEST(Tcppktlat, EachMessageWaits) {
  require_tool("tcppktlat");
  for (auto* family : {"4", "6"}) {
    SCOPED_TRACE(family);
    Messages pair({"--messages", "5", "--nap", "20", "--peek", "--family", family});
    auto seen = trace(pair, {"--strict"});
    ASSERT_EQ(seen.report.body.size(), 5u);
    ASSERT_EQ(seen.lines.size(), 5u);
    EXPECT_GE(seen.report.sum("latency_ns"), seen.truth["least_ns"].u64());
    EXPECT_LE(seen.report.sum("latency_ns"), seen.truth["most_ns"].u64());
    for (auto& line : seen.lines) {
      EXPECT_GE(line["latency_ns"].u64(), 20'000'000u);
      EXPECT_EQ(line["tid"].u64(), pair.reader);
      EXPECT_EQ(line["comm"].str(), "tcpio");
      EXPECT_EQ(line["local_port"].u64(), pair.port);
      EXPECT_EQ(line["remote_port"].u64(), seen.truth["port"].u64());
      EXPECT_EQ(line["ip"].u64(), *family == '4' ? 4u : 6u);
      EXPECT_EQ(line["netns"].u64(), pair.netns);
      EXPECT_TRUE(line["softirq_ns"].is_null());
    }
  }
}

// More than one segment waits, and more than there is room for.
TOOL_TEST(Tcppktlat, LaterSegmentsDoNotHideTheOldest) {
  require_tool("tcppktlat");
  for (auto* messages : {"5", "30"}) {
    SCOPED_TRACE(messages);
    Messages pair({"--together", "--messages", messages, "--gap", "10"});
    auto seen = trace(pair, {"--strict"});
    ASSERT_GE(seen.lines.size(), 1u);
    EXPECT_LE(seen.lines.size(), std::stoul(messages));
    EXPECT_GE(seen.lines[0]["latency_ns"].u64(), (std::stoul(messages) - 1) * 10'000'000u);
  }
}

// A call that waits for the second half has taken the first one.
TOOL_TEST(Tcppktlat, HalvesOfAMessage) {
  require_tool("tcppktlat");
  Messages pair({"--messages", "4", "--pieces", "2", "--take", "waitall"});
  EXPECT_EQ(trace(pair, {"--strict"}).lines.size(), 8u);
}

TOOL_TEST(Tcppktlat, TimeBeforeTcp) {
  require_tool("tcppktlat");
  Messages pair({"--messages", "20", "--nap", "20"});
  auto seen = trace(pair, {"--strict", "--softirq"});
  ASSERT_EQ(seen.lines.size(), 20u);
  std::uint64_t stamped = 0, softirq = 0;
  for (auto& line : seen.lines)
    if (!line["softirq_ns"].is_null()) {
      stamped++;
      softirq += line["softirq_ns"].u64();
    }
  EXPECT_GE(stamped, 10u);  // the kernel turns stamps on a little later
  EXPECT_LE(seen.report.sum("latency_ns") + softirq, seen.truth["most_ns"].u64());
}

TOOL_TEST(Tcppktlat, Histograms) {
  require_tool("tcppktlat");
  Messages pair({"--messages", "20", "--nap", "5"});
  auto seen = trace(pair, {"-H", "--softirq"});
  std::map<std::string, std::uint64_t> parts;
  for (auto& line : seen.report.body) parts[line["part"].str()] += line["count"].u64();
  EXPECT_EQ(parts["reader"], 20u);
  EXPECT_EQ(parts["softirq"] + seen.report.lost("unmatched"), 20u);
  EXPECT_GE(parts["softirq"], 5u);
  Messages other({"--messages", "7"});
  auto whole = trace(other, {"-H", "--strict"});
  ASSERT_EQ(whole.report.body.size(), 1u);
  EXPECT_EQ(whole.report.body[0]["count"].u64(), 7u);
}

TOOL_TEST(Tcppktlat, Filters) {
  require_tool("tcppktlat");
  Messages pair({"--messages", "4", "--nap", "5"});
  auto start = [&](Strings options) {
    options.insert(options.begin(), {"--json", "--netns", pair.id()});
    return std::make_unique<Tracer>("tcppktlat", options);
  };
  auto reader = std::to_string(pair.reader), port = std::to_string(pair.port);
  auto own = start({"-p", reader}), thread = start({"-t", reader}),
       writer = start({"-p", pair.id()});
  auto local = start({"-l", port}), remote = start({"-r", port}), six = start({"-6"});
  auto slow = start({"1000"}), slower = start({"100000000"});
  pair.release();
  pair.truth();
  EXPECT_EQ(own->stop().body.size(), 4u);
  EXPECT_EQ(thread->stop().body.size(), 4u);
  EXPECT_EQ(writer->stop().body.size(), 0u);
  EXPECT_EQ(local->stop().body.size(), 4u);
  EXPECT_EQ(remote->stop().body.size(), 0u);
  EXPECT_EQ(six->stop().body.size(), 0u);
  EXPECT_EQ(slow->stop().body.size(), 4u);
  auto none = slower->stop();
  EXPECT_EQ(none.body.size(), 0u);
  EXPECT_GE(none.lost("filtered"), 4u);
  EXPECT_EQ(run({tool_path("tcppktlat"), "x"}).status, 2);
}

TOOL_TEST(Tcppktlat, Text) {
  require_tool("tcppktlat");
  Messages pair({"--messages", "1", "--nap", "2"});
  Tracer tracer("tcppktlat", {"-T", "--softirq", "--netns", pair.id()});
  pair.release();
  auto truth = pair.truth();
  std::istringstream lines(tracer.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME", "PID", "TID", "COMM", "LADDR", "LPORT", "RADDR", "RPORT",
                                  "MS", "SOFTIRQ(ms)"}));
  ASSERT_TRUE(std::getline(lines, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 10u) << line;
  auto reader = std::to_string(pair.reader);
  EXPECT_EQ(Strings(cells.begin() + 1, cells.begin() + 8),
            (Strings{reader, reader, "tcpio", "127.0.0.1", std::to_string(pair.port), "127.0.0.1",
                     std::to_string(truth["port"].u64())}));
}

const DeclareTests kTcppktlat{{
    .name = "tcppktlat",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-H"}}},
    .events = {{}, "tcpio"},
    .stress = {.workload = "tcpio --messages {n}",
               .events = 1000,
               .truth = "messages",
               .tiny = "--ring-size 4096",
               .pids = "reader_pid"},
    .long_run = {{.arguments = "-H"}},
}};

}  // namespace
}  // namespace coretap::tooltest
