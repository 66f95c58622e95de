// bitesize against a process that submits a known number of requests of one size.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

Report trace(Workload& workload, Strings options, Json* truth) {
  options.insert(options.end(),
                 {"--json", "--strict", "-p", workload.id(), "-d", workload.ready()["disk"].str()});
  Tracer tracer("bitesize", options);
  workload.release();
  *truth = workload.truth();
  return tracer.stop();
}

TOOL_TEST(Bitesize, SizesOfTheWritesOfAProcess) {
  require_tool("bitesize");
  for (auto* size : {"4k", "16k", "64k"}) {
    SCOPED_TRACE(size);
    Workload workload("blockio", {"--make", "loop", "--count", "40", "--size", size}, kLinger);
    Json truth;
    auto report = trace(workload, {}, &truth);
    ASSERT_EQ(report.body.size(), 1u);
    auto& line = report.body[0];
    auto bytes = truth["size"].u64();
    EXPECT_EQ(line["comm"].str(), "blockio");
    EXPECT_EQ(line["count"].u64(), truth["count"].u64());
    EXPECT_EQ(line["total_bytes"].u64(), truth["count"].u64() * bytes);
    ASSERT_EQ(line["histogram"].items().size(), 1u) << "all have one size";
    EXPECT_LE(line["histogram"].items().at(0)["from_bytes"].u64(), bytes);
    EXPECT_GT(line["histogram"].items().at(0)["below_bytes"].u64(), bytes);
    EXPECT_EQ(report.ledger["shown"].u64(), truth["count"].u64());
  }
}

TOOL_TEST(Bitesize, OperationsAndDisksApart) {
  require_tool("bitesize");
  Workload workload("blockio", {"--make", "loop", "--op", "read", "--count", "30"}, kLinger);
  Json truth;
  auto report = trace(workload, {"-F", "-D"}, &truth);
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["operation"].str(), "Read");
  EXPECT_EQ(report.body[0]["disk"].str(), truth["disk"].str());
  EXPECT_EQ(report.sum("count"), truth["count"].u64());
}

TOOL_TEST(Bitesize, FilterByComm) {
  require_tool("bitesize");
  Workload named("blockio", {"--make", "loop", "--count", "30", "--comm", "bite-by-name"}, kLinger),
      other("blockio", {"--make", "loop", "--count", "20"});
  Tracer tracer("bitesize", {"--json", "-c", "bite-by-name", "-d", named.ready()["disk"].str()});
  other.release();
  named.release();
  auto count = named.truth()["count"].u64();
  other.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["comm"].str(), "bite-by-name");
  EXPECT_EQ(report.sum("count"), count);
}

// A CPU that keeps the row of the one must not take it for the other's.
TOOL_TEST(Bitesize, NamesThatBeginAlike) {
  require_tool("bitesize");
  const Workload::How linger{.linger = true};
  Workload one("blockio", {"--make", "loop", "--count", "40", "--comm", "bite-alike-one"}, linger),
      two("blockio", {"--make", "loop", "--count", "30", "--comm", "bite-alike-two"}, linger);
  Tracer tracer("bitesize", {"--json", "--strict", "-p", one.id() + "," + two.id()});
  std::map<std::string, std::uint64_t> expected, counts;
  for (auto* workload : {&one, &two}) {
    workload->release();
    expected[workload == &one ? "bite-alike-one" : "bite-alike-two"] =
        workload->truth()["count"].u64();
  }
  for (auto& line : tracer.stop().body) counts[line["comm"].str()] = line["count"].u64();
  EXPECT_EQ(counts, expected);
}

TOOL_TEST(Bitesize, TextHasTheKnownTitles) {
  require_tool("bitesize");
  Workload workload("blockio", {"--make", "loop", "--count", "10"}, kLinger);
  Tracer tracer("bitesize", {"-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find("Process Name = blockio\n"), std::string::npos) << text;
  EXPECT_NE(text.find("     kbytes              : count    distribution\n"), std::string::npos)
      << text;
}

const DeclareTests kBitesize{{
    .name = "bitesize",
    .reports = {{ReportKind::aggregate}},
    .events = {"-D -F", "blockio --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .options = "-D",
               .shown = "count",
               .truth = "count",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "-D -F 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
