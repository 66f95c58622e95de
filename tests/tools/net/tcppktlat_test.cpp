// tcppktlat against a reader that delays reading by known minimum and maximum times.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

Observed of_messages(const std::string& options, const std::string& messages) {
  return watch({"tcppktlat --json --netns {pid} " + options}, "tcpio --messages " + messages);
}

std::vector<Json> of_reader(const Observed& seen) {
  return lines_with(seen.body(), {{"type", "event"}, {"pid", seen.number("reader_pid")}});
}

TOOL_TEST(Tcppktlat, EachMessageWaits) {
  for (auto& family : {kFour, kSix}) {
    SCOPED_TRACE(family.name);
    auto seen = of_messages("--strict", "5 --nap 20 --peek --family " + family.name);
    ASSERT_EQ(seen.shown(0), 5u);
    ASSERT_EQ(of_reader(seen).size(), 5u);
    EXPECT_GE(seen.report().sum("latency_ns"), seen.number("least_ns"));
    EXPECT_LE(seen.report().sum("latency_ns"), seen.number("most_ns"));
    for (auto& line : of_reader(seen)) {
      EXPECT_GE(line["latency_ns"].u64(), 20'000'000u);
      expect_fields(line,
                    seen.filled(family.ends() + "tid {reader_pid} comm tcpio local_port {port} "
                                                "softirq_ns null"));
      expect_fields(line, {{"remote_port", seen.truth["port"].u64()}, {"netns", seen.netns}});
    }
  }
}

// More than one segment waits, and more than the table has room for.
TOOL_TEST(Tcppktlat, LaterSegmentsDoNotHideTheOldest) {
  for (std::size_t messages : {5, 30}) {
    SCOPED_TRACE(messages);
    auto events =
        of_reader(of_messages("--strict", std::to_string(messages) + " --together --gap 10"));
    ASSERT_GE(events.size(), 1u);
    EXPECT_LE(events.size(), messages);
    EXPECT_GE(events[0]["latency_ns"].u64(), (messages - 1) * 10'000'000u);
  }
}

// A call that waits for the second half has read the first one.
TOOL_TEST(Tcppktlat, HalvesOfAMessage) {
  EXPECT_EQ(of_reader(of_messages("--strict", "4 --pieces 2 --take waitall")).size(), 8u);
}

TOOL_TEST(Tcppktlat, TimeBeforeTcp) {
  auto seen = of_messages("--strict --softirq", "20 --nap 20");
  auto events = of_reader(seen);
  ASSERT_EQ(events.size(), 20u);
  std::erase_if(events, [](auto& line) { return line["softirq_ns"].is_null(); });
  EXPECT_GE(events.size(), 10u);  // the kernel enables timestamps slightly later
  EXPECT_LE(seen.report().sum("latency_ns") + sum(events, "softirq_ns"), seen.number("most_ns"));
}

TOOL_TEST(Tcppktlat, Histograms) {
  auto report = of_messages("-H --softirq", "20 --nap 5").report();
  auto softirq = sum(lines_with(report.body, {{"part", "softirq"}}), "count");
  EXPECT_EQ(sum(lines_with(report.body, {{"part", "reader"}}), "count"), 20u);
  EXPECT_EQ(softirq + report.lost("unmatched"), 20u);
  EXPECT_GE(softirq, 5u);
  expect_fields(only(of_messages("-H --strict", "7").body()), "count 7");
}

TOOL_TEST(Tcppktlat, FiltersAndText) {
  std::vector<Strings> tools;
  for (auto* options : {"-p {reader_pid}", "-t {reader_pid}", "-l {port}", "1000", "-p {pid}",
                        "-r {port}", "-6", "100000000"})
    tools.push_back("tcppktlat --json --netns {pid}" + Strings(options));
  tools.emplace_back("tcppktlat -T --softirq --netns {pid}");
  auto seen = watch(tools, "tcpio --messages 4 --nap 5");
  for (std::size_t i = 0; i < 8; i++) EXPECT_EQ(seen.shown(i), i < 4 ? 4u : 0u) << join(tools[i]);
  EXPECT_GE(seen.report(7).lost("filtered"), 4u);
  auto rows = lines(seen.text(8));
  expect_row(rows.at(0), "TIME PID TID COMM LADDR LPORT RADDR RPORT MS SOFTIRQ(ms)");
  expect_row(rows.at(1),
             seen.filled("* {reader_pid} {reader_pid} tcpio 127.0.0.1 {port} 127.0.0.1 " +
                         seen.truth["port"].text() + " * *"));
}

TOOL_TEST(Tcppktlat, OlderDataOfOtherPorts) {
  const Listener listener(1);
  const auto client = listener.connect();
  const auto server = listener.accept();
  ASSERT_EQ(::write(client.get(), "older", 5), 5);
  Tracer other("tcppktlat", Strings{"--json", "--strict", "-l", "1"});
  Tracer same("tcppktlat", Strings{"--json", "-l", std::to_string(listener.port())});
  char data[8];
  ASSERT_EQ(::read(server.get(), data, sizeof data), 5);
  EXPECT_GE(other.stop().lost("filtered"), 1u);
  EXPECT_EQ(same.stop().lost("unmatched"), 1u);
}

TESTS_OF(tcppktlat, .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-H"}}},
         .events = {{}, "tcpio"},
         .stress = event_row("tcpio --messages {n}", 1000, "messages", {}, "reader_pid"),
         .long_run = {{.arguments = "-H"}});

}  // namespace
}  // namespace coretap::tooltest
