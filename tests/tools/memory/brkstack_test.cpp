// brkstack against a process that moves the end of its heap a known number of times.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

bool has_frame(const Json& line, std::string_view name) {
  for (auto& frame : line["user_stack"].strings())
    if (contains(frame, name)) return true;
  return false;
}

std::uint64_t sum_of(const Report& report, const char* frame, const char* key) {
  std::uint64_t sum = 0;
  for (auto& line : report.body)
    if (has_frame(line, frame)) sum += line[key].u64();
  return sum;
}

struct Seen {
  Report report;
  Json truth;
};
Seen see(Strings options) {
  require_tool("brkstack");
  Workload workload("grower", {}, kLinger);
  options.insert(options.end(), {"--json", "--strict", "-p", workload.id()});
  Tracer tracer("brkstack", options);
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  workload.end_lingering();
  return {std::move(report), truth};
}

TOOL_TEST(Brkstack, EachChangeWithItsBytes) {
  auto seen = see({});
  for (auto* key : {"grows", "grown_bytes"})
    EXPECT_EQ(sum_of(seen.report, "workload_grow", key), seen.truth[key].u64()) << key;
  for (auto* key : {"shrinks", "shrunk_bytes"})
    EXPECT_EQ(sum_of(seen.report, "workload_shrink", key), seen.truth[key].u64()) << key;
  EXPECT_EQ(sum_of(seen.report, "workload_grow", "shrinks"), 0u);
  EXPECT_EQ(sum_of(seen.report, "workload_shrink", "grows"), 0u);
  for (auto& line : seen.report.body) {
    EXPECT_EQ(line["call"].str(), "brk");
    EXPECT_EQ(line["comm"].str(), "grower");
  }
}

TOOL_TEST(Brkstack, MappingsIfAsked) {
  auto seen = see({"--mmap"});
  EXPECT_EQ(sum_of(seen.report, "workload_map", "grows"), seen.truth["maps"].u64());
  EXPECT_EQ(sum_of(seen.report, "workload_map", "grown_bytes"), seen.truth["mapped_bytes"].u64());
  EXPECT_EQ(sum_of(seen.report, "workload_grow", "grows"), seen.truth["grows"].u64());
}

TOOL_TEST(Brkstack, SmallChangesLeftOut) {
  auto seen = see({"-m", "65537"});
  EXPECT_TRUE(seen.report.body.empty());
  EXPECT_GE(seen.report.lost("filtered"), seen.truth["changes"].u64());
}

TOOL_TEST(Brkstack, BytesForFlameGraphs) {
  require_tool("brkstack");
  Workload workload("grower", {}, kLinger);
  Tracer tracer("brkstack", {"-f", "-p", workload.id()});
  workload.release();
  auto grown = workload.truth()["grown_bytes"].u64();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "grower;")) << text;
  EXPECT_FALSE(contains(text, "workload_shrink")) << text;
  std::uint64_t sum = 0;
  for (auto& line : lines(text))
    if (contains(line, ";workload_grow")) sum += std::stoull(line.substr(line.rfind(' ') + 1));
  EXPECT_EQ(sum, grown);
  EXPECT_EQ(run({tool_path("brkstack"), "-f", "--top", "3"}).status, 2);
}

const DeclareTests kBrkstack{{
    .name = "brkstack",
    .reports = {{ReportKind::aggregate}, {ReportKind::stacks, {"--folded"}}},
    .events = {{}, "grower --count 20"},
    .stress = {.workload = "grower --count {n} --bytes 4096",
               .events = 3000,
               .shown = "grows+shrinks",
               .truth = "changes",
               .tiny = "--max-keys 1",
               .slack = 10},  // of its C library
    .long_run = {{.arguments = "-i 10 --mmap"}},
}};

}  // namespace
}  // namespace coretap::tooltest
