// klockstat against a process that waits for two locks a known number of times and for a known
// time, and against perf's count of the same waits.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// 7.3 takes the lock of a pipe in a function of its own where it has to make pages first.
const Strings kPipeWriters = {"pipe_write", "pipe_prefill_and_lock"};

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

void expect_waits(const Sum& sum, const Json& truth) {
  auto waits = truth["waits"].u64();
  EXPECT_GE(sum.count, waits);
  EXPECT_LE(sum.count, waits + waits / 2) << "a pipe that starts a round may be waited for, too";
  EXPECT_LE(sum.total_ns, truth["waited_ns"].u64());
  EXPECT_GE(sum.total_ns, kRounds * kHoldNs * 8 / 10);
  EXPECT_GE(sum.max_ns, kHoldNs * 8 / 10);
}

TOOL_TEST(Klockstat, WaitsByCaller) {
  require_tool("klockstat");
  Workload workload("contender", rounds(), kLinger);
  Tracer tracer("klockstat", {"--json", "--strict", "-s", "4", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  expect_waits(sum_of(report, "mutex", kPipeWriters), truth["pipe"]);
  expect_waits(sum_of(report, "rwsem:W", {"file_write_iter"}), truth["file"]);
  if (truth["counted"].boolean()) {
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
  Workload workload("contender", rounds(), kLinger);
  Tracer tracer("klockstat",
                {"--json", "-c", pipe_writer(), "-t", workload.id(), "--per-thread", "--per-lock"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  unsigned int long_waits = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["tid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(line["comm"].str(), "contender");
    EXPECT_NE(line["lock"].u64(), 0u);
    EXPECT_TRUE(line["caller"].str().starts_with(pipe_writer()));
    if (line["max_ns"].u64() >= kHoldNs * 8 / 10) long_waits++;
  }
  EXPECT_EQ(long_waits, 1u) << "one pipe is written to while another thread holds its lock";
  EXPECT_GE(report.lost("filtered"), kRounds) << "the file's lock";
}

TOOL_TEST(Klockstat, HoldsOfTheMappings) {
  require_tool("klockstat");
  Workload workload("contender", {"--rounds", "0", "--maps", "50"}, kLinger);
  Tracer tracer("klockstat", {"--json", "--holds", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  auto mapped = sum_of(report, "rwsem:W", {"vm_mmap_pgoff"});
  // From 6.4 to 6.14 other functions of munmap take locks of the areas too.
  auto unmapped = sum_of(report, "rwsem:W", {"vm_munmap"});
  EXPECT_GT(mapped.total_ns, 0u);
  // The kernel skips a program that it is running already for a task that was preempted.
  for (auto& sum : {mapped, unmapped}) {
    EXPECT_LE(sum.count, 50u);
    EXPECT_GE(sum.count + report.lost("missed"), 50u);
  }
}

/// Where programs may be attached to the kernel's functions.
TOOL_TEST(Klockstat, HoldsOfAMutex) {
  require_tool("klockstat");
  Workload workload("contender", rounds(), kLinger);
  Tracer tracer("klockstat",
                {"--json", "--holds", "-t", std::to_string(workload.ready()["holder"].u64())});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  if (contains(report.err, "only holds of mmap_lock")) throw Skip(report.err);
  for (auto& [type, callers] :
       {std::pair("mutex", kPipeWriters), {"rwsem:W", Strings{"file_write_iter"}}}) {
    auto sum = sum_of(report, type, callers);
    EXPECT_GE(sum.count + report.lost("missed"), kRounds) << type;
    EXPECT_GE(sum.total_ns, kRounds * kHoldNs * 8 / 10) << type;
  }
}

const DeclareTests kKlockstat{{
    .name = "klockstat",
    .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"--holds"}}},
    .events = {{}, "contender --rounds 3"},
    .nothing_when_idle = true,
    .stress = {.workload = "contender --ms 0 --rounds {n/2}",
               .events = 400,
               .shown = "count",
               .truth = "contention_ends",
               .tiny = "--max-keys 1",
               .slack = 20},
    .long_run = {{.arguments = "-i 60"}, {.arguments = "--holds -i 60", .of = "holds"}},
}};

}  // namespace
}  // namespace coretap::tooltest
