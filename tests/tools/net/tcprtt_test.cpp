// tcprtt against what TCP_INFO says of a socket, and a round trip of known length.
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// How many values lie in the range that has this one.
std::uint64_t in_range_of(const Json& histogram, std::uint64_t ns) {
  for (auto& slot : histogram["histogram"].items())
    if (slot["from_ns"].u64() <= ns && ns < slot["below_ns"].u64()) return slot["count"].u64();
  return 0;
}
std::uint64_t from(const Json& histogram, std::uint64_t ns) {
  std::uint64_t count = 0;
  for (auto& slot : histogram["histogram"].items())
    if (slot["from_ns"].u64() >= ns) count += slot["count"].u64();
  return count;
}

// What acknowledges the first segment comes 70 ms later; there are two values then that have it.
TOOL_TEST(Tcprtt, ARoundTripOfKnownLength) {
  require_tool("tcprtt");
  Connections workload({"--sessions", "1", "--delayed", "70"});
  Strings own{"--json",      "--strict", "--netns",
              workload.id(), "-P",       std::to_string(workload.server_port)};
  auto raw = own, wrong = own;
  raw.emplace_back("--raw");
  wrong.back() = "1";
  Tracer smoothed("tcprtt", own), samples("tcprtt", raw), none("tcprtt", wrong);
  workload.release();
  auto truth = workload.truth();
  auto all = smoothed.stop(), each = samples.stop(), nothing = none.stop();
  if (truth["retransmits"].u64()) throw Skip("too slow: the segment was sent again");
  ASSERT_EQ(all.body.size(), 1u);
  ASSERT_EQ(each.body.size(), 1u);
  EXPECT_EQ(all.body[0]["count"].u64(), truth["segments_in"].u64());
  EXPECT_GE(in_range_of(all.body[0], truth["smoothed_us"].u64() * 1000), 1u);
  EXPECT_EQ(from(each.body[0], 65'536'000), 1u);
  EXPECT_LT(each.body[0]["count"].u64(), truth["segments_in"].u64());
  EXPECT_GE(truth["round_trip_ns"].u64(), 70'000'000u);
  EXPECT_EQ(nothing.body[0]["count"].u64(), 0u);
  EXPECT_GE(nothing.lost("filtered"), truth["segments_in"].u64());
}

TOOL_TEST(Tcprtt, PerAddress) {
  require_tool("tcprtt");
  Connections four({"--sessions", "2"}), six({"--family", "6"}), mapped({"--family", "mapped"});
  Tracer local("tcprtt", {"--json", "--strict", "-b"});
  Tracer both("tcprtt", {"--json", "--strict", "-bB", "-6", "--netns", six.id()});
  Tracer remote("tcprtt", {"--json", "-B", "-4", "--netns", mapped.id(), "-A", "127.0.0.0/8", "-P",
                           std::to_string(mapped.server_port)});
  for (auto* w : {&four, &six, &mapped}) w->release();
  four.truth();
  six.truth();
  auto truth = mapped.truth();
  std::uint64_t seen = 0;
  for (auto& h : local.stop().body) {
    EXPECT_FALSE(h.has("remote_address"));
    auto address = h["local_address"].str();
    seen += address == "127.0.0.1" ? 1 : address == "::1" ? 10 : 0;
  }
  EXPECT_EQ(seen, 11u);
  auto of_six = both.stop().body, of_mapped = remote.stop().body;
  ASSERT_EQ(of_six.size(), 1u);
  EXPECT_EQ(of_six[0]["local_address"].str(), "::1");
  EXPECT_EQ(of_six[0]["remote_address"].str(), "::1");
  ASSERT_EQ(of_mapped.size(), 1u);
  EXPECT_EQ(of_mapped[0]["remote_address"].str(), "127.0.0.1");
  EXPECT_EQ(of_mapped[0]["count"].u64(), truth["segments_in"].u64());
}

TOOL_TEST(Tcprtt, Owner) {
  require_tool("tcprtt");
  Connections workload({"--sessions", "2"}), other({"--sessions", "2"});
  Tracer tracer("tcprtt", {"--json", "--strict", "-p", workload.id()});
  for (auto* w : {&workload, &other}) w->release();
  other.truth();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["count"].u64(), truth["segments_in"].u64());
}

TOOL_TEST(Tcprtt, Text) {
  require_tool("tcprtt");
  Connections workload({"--sessions", "1", "--delayed", "70"});
  Tracer tracer("tcprtt", {"-b", "-e", "-m", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "\nLocal Address = 127.0.0.1")) << text;
  EXPECT_TRUE(contains(text, "msecs")) << text;
  EXPECT_TRUE(contains(text, "\navg = ")) << text;
}

TOOL_TEST(Tcprtt, APortForAProcess) {
  Process gone({.argv = {"true"}});
  gone.wait();
  auto id = std::to_string(gone.pid());
  auto result = run({tool_path("tcprtt"), "-p", id});
  EXPECT_EQ(result.status, 2);
  // There are processes with larger numbers than ports have.
  EXPECT_EQ(contains(result.err, "-L " + id), gone.pid() <= 65535) << result.err;
  for (auto* wrong : {"65536", "80-", "x", "90-80"})
    EXPECT_EQ(run({tool_path("tcprtt"), "-L", wrong}).status, 2) << wrong;
}

const DeclareTests kTcprtt{{
    .name = "tcprtt",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "tcp"},
    .stress = {.workload = "tcp --sessions {n} --client-bytes 10 --server-bytes 10",
               .events = 400,
               .shown = "count",
               .truth = "segments_in"},
}};

}  // namespace
}  // namespace coretap::tooltest
