// biopattern against a process that writes in a known order to a device of its own.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Biopattern, SequentialAndRandom) {
  require_tool("biopattern");
  for (std::string pattern : {"seq", "random"}) {
    SCOPED_TRACE(pattern);
    Workload workload("blockio",
                      {"--make", "loop", "--count", "60", "--pattern", pattern, "--span", "8m"},
                      kLinger);
    auto disk = workload.ready()["disk"].str();
    Tracer tracer("biopattern", {"--json", "--strict", "-d", disk});
    workload.release();
    auto truth = workload.truth();
    auto report = tracer.stop();
    ASSERT_EQ(report.body.size(), 1u);
    auto& line = report.body[0];
    auto count = truth["count"].u64();
    EXPECT_EQ(line["disk"].str(), disk);
    EXPECT_EQ(line["ios"].u64(), count);
    EXPECT_EQ(line["total_bytes"].u64(), truth["bytes"].u64());
    EXPECT_EQ(line["random"].u64() + line["sequential"].u64(), count - 1) << "the first is neither";
    EXPECT_NEAR(line["random_ratio"].real() + line["sequential_ratio"].real(), 1, 1e-9);
    if (pattern == "seq")
      EXPECT_EQ(line["random"].u64(), 0u);
    else
      EXPECT_LE(line["sequential"].u64(), 3u);
  }
}

// With a flush behind each write, which is no place on the disk.
TOOL_TEST(Biopattern, FlushesDoNotMoveTheDisk) {
  require_tool("biopattern");
  Workload workload("blockio", {"--make", "loop", "--op", "flush", "--count", "20"}, kLinger);
  Tracer tracer("biopattern", {"--json", "--strict", "-d", workload.ready()["disk"].str()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("ios"), truth["count"].u64());
  EXPECT_EQ(report.sum("random"), 0u);
}

TOOL_TEST(Biopattern, DisksApartInText) {
  require_tool("biopattern");
  Workload one("blockio", {"--make", "loop", "--count", "10"}, kLinger),
      two("blockio", {"--make", "loop", "--count", "20"}, kLinger);
  Tracer tracer("biopattern", {"-T"}), json("biopattern", {"--json"});
  one.release();
  two.release();
  one.truth();
  two.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "DISK         %RND      %SEQ    COUNT     KBYTES\n")) << text;
  EXPECT_TRUE(contains(text, "\n" + one.ready()["disk"].str())) << text;
  auto report = json.stop();
  std::uint64_t both = 0;
  for (auto& line : report.body)
    if (line["disk"].str() == one.ready()["disk"].str() ||
        line["disk"].str() == two.ready()["disk"].str())
      both += line["ios"].u64();
  EXPECT_EQ(both, 30u);
}

const DeclareTests kBiopattern{{
    .name = "biopattern",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "blockio --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .shown = "ios",
               .truth = "count",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
