// klockstat against a process that waits for two locks a known number of times and for a known
// time, and against perf's count of the same waits.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// 7.3 takes the lock of a pipe in a separate function if it has to allocate pages first.
const Strings kPipeWriters = {"pipe_write", "pipe_prefill_and_lock"};

constexpr std::uint64_t kRounds = 12, kLongNs = 20'000'000 / 10 * 8;
constexpr char kContender[] = "contender --rounds 12 --ms 20";

/// Rows whose callers' names contain one of these.
std::vector<Json> rows_of(const Report& report, const std::string& type, const Strings& callers) {
  return lines_where(report, [&](auto& line) {
    auto has = [caller = line["caller"].str()](auto& part) { return contains(caller, part); };
    return line["lock_type"].str() == type && std::ranges::any_of(callers, has);
  });
}

void expect_waits(const std::vector<Json>& rows, const Json& truth) {
  auto waits = truth["waits"].u64(), count = sum(rows, "count");
  EXPECT_GE(count, waits);
  EXPECT_LE(count, waits + waits / 2) << "a pipe that starts a round may be waited for, too";
  EXPECT_LE(sum(rows, "total_ns"), truth["waited_ns"].u64());
  EXPECT_GE(sum(rows, "total_ns"), kRounds * kLongNs);
  EXPECT_TRUE(std::ranges::any_of(rows, [](auto& row) { return row["max_ns"].u64() >= kLongNs; }));
}

TOOL_TEST(Klockstat, WaitsByCaller) {
  auto seen = observe("klockstat --json --strict -s 4 -p {pid}", kContender);
  auto report = seen.report();
  expect_waits(rows_of(report, "mutex", kPipeWriters), seen.truth["pipe"]);
  expect_waits(rows_of(report, "rwsem:W", "file_write_iter"), seen.truth["file"]);
  if (seen.truth["counted"].boolean()) {
    auto ends = seen.truth["contention_ends"].u64();
    EXPECT_GE(report.sum("count"), ends);
    EXPECT_LE(report.sum("count"), ends + 20) << "of the ends of threads";
  }
  for (auto& line : report.body) {
    auto frames = line["kernel_stack"].strings();
    ASSERT_FALSE(frames.empty());
    EXPECT_LE(frames.size(), 4u);
    EXPECT_EQ(frames.front(), line["caller"].str());
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
}

/// The kernel function that writes to a pipe.
std::string pipe_writer() {
  return contains(slurp("/proc/kallsyms"), " anon_pipe_write\n") ? "anon_pipe_write" : "pipe_write";
}

TOOL_TEST(Klockstat, OneCallerOfOneThread) {
  auto writer = pipe_writer();
  auto seen = observe("klockstat --json -t {pid} --per-thread --per-lock -c " + writer, kContender);
  auto report = seen.report();
  for (auto& line : report.body) {
    expect_fields(line, {{"tid", seen.pid}, {"comm", "contender"}});
    EXPECT_NE(line["lock"].u64(), 0u);
    EXPECT_TRUE(line["caller"].str().starts_with(writer));
  }
  auto long_waits = lines_where(report, [](auto& line) { return line["max_ns"].u64() >= kLongNs; });
  EXPECT_EQ(long_waits.size(), 1u) << "one pipe is written to while another thread holds its lock";
  EXPECT_GE(report.lost("filtered"), kRounds) << "the file's lock";
}

TOOL_TEST(Klockstat, HoldsOfTheMappings) {
  auto report =
      observe("klockstat --json --holds -p {pid}", "contender --rounds 0 --maps 50").report();
  auto mapped = rows_of(report, "rwsem:W", "vm_mmap_pgoff");
  // From 6.4 to 6.14 other functions of munmap take locks of VMAs, too.
  auto unmapped = rows_of(report, "rwsem:W", "vm_munmap");
  EXPECT_GT(sum(mapped, "total_ns"), 0u);
  // The kernel skips a program that is already running for a preempted task.
  for (auto* rows : {&mapped, &unmapped}) {
    EXPECT_LE(sum(*rows, "count"), 50u);
    EXPECT_GE(sum(*rows, "count") + report.lost("missed"), 50u);
  }
}

/// Where programs can be attached to kernel functions.
TOOL_TEST(Klockstat, HoldsOfAMutex) {
  auto report = observe("klockstat --json --holds -t {holder}", kContender).report();
  if (contains(report.err, "only holds of mmap_lock")) throw Skip(report.err);
  for (auto& [type, callers] :
       {std::pair("mutex", kPipeWriters), {"rwsem:W", Strings("file_write_iter")}}) {
    auto rows = rows_of(report, type, callers);
    EXPECT_GE(sum(rows, "count") + report.lost("missed"), kRounds) << type;
    EXPECT_GE(sum(rows, "total_ns"), kRounds * kLongNs) << type;
  }
}

TESTS_OF(klockstat, .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"--holds"}}},
         .events = {{}, "contender --rounds 3"}, .nothing_when_idle = true,
         .stress = count_row("contender --ms 0 --rounds {n/2}", 400, "count", "contention_ends")
                       .with_slack(20),
         .long_run = {{.arguments = "-i 60"}, {.arguments = "--holds -i 60", .of = "holds"}});

}  // namespace
}  // namespace coretap::tooltest
