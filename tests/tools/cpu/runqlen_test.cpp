// runqlen against the kernel's sums of run delay: the mean length of a run queue times the time is
// what all its tasks waited together (Little's law).
#include <cmath>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr double kHz = 999;
/// The histogram of the CPU that the workload keeps busy.
const Json* of_cpu(const Report& report, std::uint64_t cpu) {
  for (auto& line : report.body)
    if (line["cpu"].u64() == cpu) return &line;
  return nullptr;
}

TOOL_TEST(Runqlen, TotalIsWhatTasksWaited) {
  require_tool("runqlen");
  Workload workload("runqueue", {"--threads", "4", "--ms", "1500"}, kLinger);
  Tracer tracer("runqlen", {"--json", "--strict", "-C", "-f", "999"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto* line = of_cpu(report, truth["cpu"].u64());
  ASSERT_TRUE(line);
  auto waited = static_cast<double>(truth["run_delay_ns"].u64());
  auto sampled = static_cast<double>((*line)["total"].u64()) / kHz * 1e9;
  // Other tasks wait for that CPU too; ticks of a busy guest come late.
  EXPECT_GT(sampled, 0.75 * waited);
  EXPECT_LT(sampled, 1.5 * waited);
  // Four threads want the CPU: one runs, three wait, in nearly all samples of that time.
  std::uint64_t three = 0, all = 0;
  for (auto& slot : (*line)["histogram"].items()) {
    EXPECT_EQ(slot["below"].u64(), slot["from"].u64() + 1) << "slots are linear";
    all += slot["count"].u64();
    if (slot["from"].u64() >= 3) three += slot["count"].u64();
  }
  EXPECT_EQ(all, (*line)["count"].u64());
  EXPECT_GT(static_cast<double>(three) / kHz, 0.6 * 1.5);
}

TOOL_TEST(Runqlen, Occupancy) {
  require_tool("runqlen");
  Workload workload("runqueue", {"--threads", "3", "--ms", "1000"}, kLinger);
  Tracer tracer("runqlen", {"--json", "-C", "-O", "-f", "999"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto* line = of_cpu(report, truth["cpu"].u64());
  ASSERT_TRUE(line);
  EXPECT_LE((*line)["queued"].u64(), (*line)["samples"].u64());
  EXPECT_NEAR(
      (*line)["occupancy_ratio"].real(),
      static_cast<double>((*line)["queued"].u64()) / static_cast<double>((*line)["samples"].u64()),
      1e-6);
  EXPECT_GT(static_cast<double>((*line)["queued"].u64()) / kHz, 0.7);
}

TOOL_TEST(Runqlen, TextIsTheKnownHistogram) {
  require_tool("runqlen");
  auto result = run({tool_path("runqlen"), "-C", "0.3", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("cpu = 0\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("   runqlen : count    distribution\n"), std::string::npos)
      << result.out;
}

TOOL_TEST(Runqlen, FrequenciesOutOfRange) {
  for (auto* bad : {"0", "20001", "x"}) {
    auto result = run({tool_path("runqlen"), "-f", bad});
    EXPECT_EQ(result.status, 2) << bad;
    EXPECT_NE(result.err.find("is not a number from 1 to "), std::string::npos) << result.err;
  }
}

constexpr std::uint64_t kStressPeriodNs = 5'000'000;

const DeclareTests kRunqlen{{
    .name = "runqlen",
    .reports = {{ReportKind::aggregate}},
    .events = {"-C", "runqueue --threads 2 --ms 60"},
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 1000,
               .options = {"-C", "--period", std::to_string(kStressPeriodNs)},
               .shown = "count",
               .truth =
                   [](stress::Load& load) {
                     return load.grown([](const stress::Rest::Thread& t) { return t.on_cpu_ns; }) /
                            kStressPeriodNs;
                   },
               .tiny = "--max-keys 1",
               .tolerance = 0.25},
    .long_run = {{.arguments = "-C 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
