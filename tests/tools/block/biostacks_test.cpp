// biostacks against a process that makes a known number of requests from known code.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

bool has_frame(const Json& stack, const std::string& name) {
  for (auto& frame : stack.strings())
    if (contains(frame, name)) return true;
  return false;
}

TOOL_TEST(Biostacks, EveryRequestWithItsStacks) {
  require_tool("biostacks");
  Workload workload("blockio", {"--make", "loop", "--count", "40"}, kLinger);
  Tracer tracer("biostacks", {"--json", "--strict", "--user-stacks", "-p", workload.id(), "-d",
                              workload.ready()["disk"].str()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_FALSE(report.body.empty());
  EXPECT_EQ(report.sum("count"), truth["count"].u64());
  EXPECT_LE(report.sum("total_ns"), truth["took_ns"].u64());
  for (auto& line : report.body) {
    EXPECT_EQ(line["comm"].str(), "blockio");
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(line["disk"].str(), truth["disk"].str());
    EXPECT_TRUE(has_frame(line["kernel_stack"], "submit_bio"))
        << line["kernel_stack"].strings().size();
    EXPECT_TRUE(has_frame(line["user_stack"], "main") || has_frame(line["user_stack"], "write"))
        << line["user_stack"].strings().size();
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
}

TOOL_TEST(Biostacks, TextHasFramesAboveTheHistogram) {
  require_tool("biostacks");
  Workload workload("blockio", {"--make", "loop", "--count", "10"}, kLinger);
  Tracer tracer("biostacks", {"-m", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  auto title = text.find("comm = blockio, pid = " + workload.id() + ", disk = ");
  ASSERT_NE(title, std::string::npos) << text;
  auto frame = text.find("\n        ", title), histogram = text.find("msecs", title);
  EXPECT_LT(frame, histogram) << text;
  EXPECT_NE(histogram, std::string::npos) << text;
}

const DeclareTests kBiostacks{{
    .name = "biostacks",
    .reports = {{ReportKind::aggregate}},
    .events = {"--user-stacks", "blockio --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .shown = "count",
               .truth = "count",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "--user-stacks 60"}},
}};

}  // namespace
}  // namespace coretap::tooltest
