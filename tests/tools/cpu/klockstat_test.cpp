// klockstat against a process that waits for two locks a known number of times and for a known
// time, and against perf's count of the same waits.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kRounds = 12, kHoldNs = 20'000'000;

struct Sum {
  std::uint64_t count = 0, total_ns = 0, max_ns = 0;
};

/// Of the rows whose callers' names have one of these parts.
Sum sum_of(const Report& report, const std::string& type, const Strings& callers) {
  Sum sum;
  for (auto& line : report.body) {
    auto caller = line["caller"].str();
    bool is_it = false;
    for (auto& part : callers) is_it |= contains(caller, part);
    if (!is_it || line["lock_type"].str() != type) continue;
    sum.count += line["count"].u64();
    sum.total_ns += line["total_ns"].u64();
    sum.max_ns = std::max(sum.max_ns, line["max_ns"].u64());
  }
  return sum;
}

Strings rounds() { return {"--rounds", std::to_string(kRounds), "--ms", "20"}; }

/// Without the tracepoints an acquisition that had not to wait counts, too.
void expect_waits(const Sum& sum, const Json& truth, bool exact) {
  if (exact) {
    EXPECT_EQ(sum.count, truth["waits"].u64());
  } else {
    EXPECT_GE(sum.count, truth["waits"].u64());
  }
  EXPECT_LE(sum.total_ns, truth["waited_ns"].u64());
  EXPECT_GE(sum.total_ns, kRounds * kHoldNs * 8 / 10);
  EXPECT_GE(sum.max_ns, kHoldNs * 8 / 10);
}

TOOL_TEST(Klockstat, WaitsByCaller) {
  require_tool("klockstat");
  Workload workload("contender", rounds(), {.linger = true});
  Tracer tracer("klockstat", {"--json", "--strict", "-s", "4", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  bool exact = truth["counted"].boolean();
  expect_waits(sum_of(report, "mutex", {"pipe_write"}), truth["pipe"], exact);
  expect_waits(sum_of(report, "rwsem:W", {"file_write_iter"}), truth["file"], exact);
  if (exact) {
    EXPECT_GE(report.sum("count"), truth["contention_ends"].u64());
    EXPECT_LE(report.sum("count"), truth["contention_ends"].u64() + 20) << "of the ends of threads";
  }
  for (auto& line : report.body) {
    auto frames = line["kernel_stack"].strings();
    ASSERT_FALSE(frames.empty());
    EXPECT_LE(frames.size(), 4u);
    EXPECT_EQ(frames.front(), line["caller"].str());
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
}

/// What writes to a pipe on this kernel.
std::string pipe_writer() {
  return contains(slurp("/proc/kallsyms"), " anon_pipe_write\n") ? "anon_pipe_write" : "pipe_write";
}

TOOL_TEST(Klockstat, OneCallerOfOneThread) {
  require_tool("klockstat");
  Workload workload("contender", rounds(), {.linger = true});
  Tracer tracer("klockstat",
                {"--json", "-c", pipe_writer(), "-t", workload.id(), "--per-thread", "--per-lock"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["tid"].u64(), static_cast<std::uint64_t>(workload.pid()));
  EXPECT_EQ(report.body[0]["comm"].str(), "contender");
  EXPECT_NE(report.body[0]["lock"].u64(), 0u);
  EXPECT_GE(report.lost("filtered"), kRounds) << "the file's lock";
}

TOOL_TEST(Klockstat, HoldsOfTheMappings) {
  require_tool("klockstat");
  Workload workload("contender", {"--rounds", "0", "--maps", "50"}, {.linger = true});
  Tracer tracer("klockstat", {"--json", "--strict", "--holds", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  auto mapped = sum_of(report, "rwsem:W", {"vm_mmap_pgoff"});
  EXPECT_EQ(mapped.count, 50u);
  EXPECT_GT(mapped.total_ns, 0u);
  EXPECT_EQ(sum_of(report, "rwsem:W", {"munmap"}).count, 50u);
}

/// Where programs may be attached to the kernel's functions.
TOOL_TEST(Klockstat, HoldsOfAMutex) {
  require_tool("klockstat");
  Workload workload("contender", rounds(), {.linger = true});
  Tracer tracer("klockstat", {"--json", "--strict", "--holds", "-t",
                              std::to_string(workload.ready()["holder"].u64())});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  if (contains(report.err, "only holds of mmap_lock")) throw Skip(report.err);
  for (auto& [type, caller] : {std::pair("mutex", "pipe_write"), {"rwsem:W", "file_write_iter"}}) {
    auto sum = sum_of(report, type, {caller});
    EXPECT_GE(sum.count, kRounds) << caller;
    EXPECT_GE(sum.total_ns, kRounds * kHoldNs * 8 / 10) << caller;
  }
}

const DeclareTests declared{{
    .name = "klockstat",
    .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"--holds"}}},
    .events = {{}, {"contender", "--rounds", "3"}},
    .nothing_when_idle = true,
    .stress = {.workload = "contender",
               .arguments = [](std::uint64_t n) -> Strings {
                 return {"--ms", "0", "--rounds", std::to_string(n / 2)};
               },
               .events = 400,
               .shown = stress::counted,
               .truth = stress::says("contention_ends"),
               .tiny = {"--max-keys", "1"},
               .slack = 20},
    .long_run = {{.arguments = {"-i", "60"}},
                 {.arguments = {"--holds", "-i", "60"}, .of = "holds"}},
}};

}  // namespace
}  // namespace coretap::tooltest
