// hardirqs against /proc/interrupts.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// How often each interrupt came so far, on all CPUs, by what its line starts with ("24", "LOC").
std::map<std::string, std::uint64_t> interrupts() {
  std::map<std::string, std::uint64_t> all;
  std::ifstream file("/proc/interrupts");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.empty()) name.pop_back();
    for (std::uint64_t n; words >> n;) all[name] += n;
  }
  return all;
}

std::map<std::string, std::uint64_t> counted(const Report& report) {
  std::map<std::string, std::uint64_t> all;
  for (auto& line : report.body) all[std::to_string(line["irq"].u64())] += line["count"].u64();
  return all;
}

/// Of each interrupt no more than came while the tool was started and ended, and no less than came
/// while it certainly traced.
void expect_between(const std::map<std::string, std::uint64_t>& counts,
                    const std::map<std::string, std::uint64_t> (&at)[4]) {
  std::uint64_t most = 0;
  for (auto& [irq, n] : counts) {
    ASSERT_TRUE(at[0].contains(irq)) << irq;
    EXPECT_GE(n, at[2].at(irq) - at[1].at(irq)) << irq;
    EXPECT_LE(n, at[3].at(irq) - at[0].at(irq)) << irq;
    most = std::max(most, n);
  }
  EXPECT_GE(most, 20u) << "the workload's writes interrupt";
}

void as_the_kernel(const Strings& more) {
  require_tool("hardirqs");
  std::map<std::string, std::uint64_t> at[4];
  at[0] = interrupts();
  Strings options{"--json", "--strict"};
  options.insert(options.end(), more.begin(), more.end());
  Tracer tracer("hardirqs", options);
  at[1] = interrupts();
  run({"sh", "-c",
       "for i in $(seq 30); do dd if=/dev/zero of=hardirqs.tmp bs=64k count=1 "
       "conv=fsync 2>/dev/null; done; rm hardirqs.tmp"});
  at[2] = interrupts();
  auto report = tracer.stop();
  at[3] = interrupts();
  auto counts = counted(report);
  if (at[2] == at[1]) throw Skip("no device interrupts here");
  expect_between(counts, at);
  for (auto& line : report.body) {
    if (more.empty()) {
      EXPECT_GE(line["total_ns"].u64(), line["max_ns"].u64());
      EXPECT_GE(line["max_ns"].u64() * line["count"].u64(), line["total_ns"].u64());
    }
    EXPECT_LE(line["spurious"].u64(), line["count"].u64());
  }
}

class HardirqsCounts : public testing::TestWithParam<Strings> {};

TEST_P(HardirqsCounts, AsTheKernel){TOOL_TEST_BODY(as_the_kernel(GetParam()))}

INSTANTIATE_TEST_SUITE_P(Ways, HardirqsCounts,
                         testing::Values(Strings{}, Strings{"--count"}, Strings{"-C"},
                                         Strings{"--max-keys", "1000"}));

TOOL_TEST(Hardirqs, LongestIsOfItsInterval) {
  require_tool("hardirqs");
  auto result = run({tool_path("hardirqs"), "--vectors", "--json", "0.3", "4"});
  if (result.status == 3) throw Skip(result.err);
  ASSERT_EQ(result.status, 0) << result.err;
  auto report = parse_report(result.out, result.err);
  std::map<std::string, std::set<std::uint64_t>> longest;
  std::size_t timers = 0;
  for (auto& line : report.body) {
    auto count = line["count"].u64(), total = line["total_ns"].u64(), most = line["max_ns"].u64();
    EXPECT_LE(most, total);
    EXPECT_GE(most * count, total);
    EXPECT_GT(most, 0u);
    if (line["name"].str() != "local_timer") continue;
    timers++;
    longest["local_timer"].insert(most);
  }
  EXPECT_GE(timers, 3u);
  // Of the whole run it would stay the same as soon as it was reached.
  EXPECT_GE(longest["local_timer"].size(), 2u);
}

TOOL_TEST(Hardirqs, TextIsTheKnownTable) {
  require_tool("hardirqs");
  auto result = run({tool_path("hardirqs"), "0.2", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("HARDIRQ                           TOTAL_count TOTAL_usecs MAX_usecs"),
            std::string::npos)
      << result.out;
  result = run({tool_path("hardirqs"), "-N", "-C", "0.2", "1"});
  EXPECT_NE(result.out.find("TOTAL_count TOTAL_nsecs MAX_nsecs   IRQ SPURIOUS CPU"),
            std::string::npos)
      << result.out;
  result = run({tool_path("hardirqs"), "--count", "-d"});
  EXPECT_EQ(result.status, 2) << result.err;
}

const DeclareTests kHardirqs{{
    .name = "hardirqs",
    .reports = {{ReportKind::aggregate}},
    .events = {"--vectors", "sleeper --sleeps 1 --spin 100"},
    .nothing_when_idle = true,
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 500,
               .options = "--vectors",
               .shown = "count",
               .tiny = "--max-keys 1",
               .uncounted = true},
    .long_run = {{.arguments = "--vectors -C 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
