// syscount against a process that makes a known number of calls.
#include <fmt/format.h>

#include "calls.hpp"

namespace coretap::tooltest {
namespace {

bool of_32_bits(const Json& row) {
  auto abi = row["abi"].str();
  return abi == "i386" || abi == "arm";
}

std::uint64_t sum_of(const Report& report, const std::string& call, const char* key = "count") {
  auto rows = lines_with(report.body, {{"syscall", call}});
  std::erase_if(rows, of_32_bits);
  return sum(rows, key);
}
void expect_counts(const Report& report, const std::map<std::string, std::uint64_t>& wanted) {
  for (auto& [call, count] : wanted) EXPECT_EQ(sum_of(report, call), count) << call;
}

/// Several tools at the same time, each with its options, on one workload until its truth.
Observed count_calls(const std::vector<Strings>& options, const Strings& arguments = {}) {
  std::vector<Strings> tools;
  for (auto& each : options) tools.push_back("syscount --json --strict -p {pid}" + each);
  return watch_all({{"syscalls" + arguments, tools}})[0];
}

void expect_descending(const Report& report, const char* key) {
  EXPECT_TRUE(std::ranges::is_sorted(report.body, std::greater<>(),
                                     [&](auto& row) { return row[key].u64(); }))
      << "not sorted by " << key;
}

TOOL_TEST(Syscount, CountsAreExact) {
  auto seen = count_calls({{}});
  auto report = seen.report();
#ifdef __aarch64__
  constexpr std::uint64_t kAlarms = 1;  // the workload's alarm(), a separate call elsewhere
#else
  constexpr std::uint64_t kAlarms = 0;
#endif
  expect_counts(report, {{"getppid", seen.number("calls")},
                         {"unlinkat", seen.number("failed")},
                         {"fchdir", seen.number("bad_descriptors")},
                         {"setitimer", 2 + kAlarms},
                         // Once each, although children return from the call as well and stops
                         // interrupt it.
                         {"clone", seen.number("forks") + seen.number("stops")},
                         {"clock_nanosleep", seen.number("sleeps")},
                         {"restart_syscall", 0},
                         // And the read that held it.
                         {"read", seen.number("interrupted") + 1}});
  EXPECT_GE(sum_of(report, "rt_sigreturn"), seen.number("interrupted"));
  expect_descending(report, "count");
  EXPECT_FALSE(report.body.at(0).has("pid"));
  EXPECT_FALSE(report.body[0].has("total_ns"));
}

TOOL_TEST(Syscount, Errors) {
  auto seen = count_calls({"-x", "-e ENOENT", "-e 9", "--errno eintr", "-L -e EINTR", "-x -P"});
  auto failed = seen.number("failed"), bad = seen.number("bad_descriptors"),
       interrupted = seen.number("interrupted");
  const std::map<std::string, std::uint64_t> counts[] = {
      {{"unlinkat", failed}, {"fchdir", bad}, {"read", interrupted}},
      {{"unlinkat", failed}},
      {{"fchdir", bad}},
      {{"read", interrupted}},
      {{"read", interrupted}}};
  for (std::size_t i = 0; i < std::size(counts); i++) {
    SCOPED_TRACE(i);
    std::uint64_t all = 0;
    for (auto& [call, count] : counts[i]) all += count;
    expect_counts(seen.report(i), counts[i]);
    EXPECT_EQ(seen.report(i).sum("count"), all) << "no other calls";
  }
  EXPECT_EQ(seen.report(5).sum("count"), failed + bad + interrupted);
}

TOOL_TEST(Syscount, Latency) {
  auto seen = count_calls({"-L", "-L -P"});
  auto report = seen.report(0), process = seen.report(1);
  auto slept = sum_of(report, "clock_nanosleep", "total_ns");
  EXPECT_GE(slept, seen.number("asked_ns"));
  EXPECT_LE(slept, seen.number("slept_ns"));
  expect_counts(report, {{"clock_nanosleep", seen.number("sleeps")},
                         {"getppid", seen.number("calls")},
                         // The read that held it started before.
                         {"read", seen.number("interrupted")},
                         {"clone", seen.number("forks") + seen.number("stops")}});
  expect_descending(report, "total_ns");
  ASSERT_EQ(process.body.size(), 1u);
  EXPECT_EQ(process.sum("count"), report.sum("count"));
  EXPECT_GE(process.sum("total_ns"), seen.number("asked_ns"));
}

// Its sleeps take what they ask for, at least, and what the workload measures around them, at most:
// so do the shortest, the longest and each percentile.
TOOL_TEST(Syscount, ErrorsAndSpreadOfTimes) {
  constexpr std::uint64_t kSteps = 40, kMs = 1'000'000;
  auto seen = count_calls({"-L", "-L --spread", "-L -P", "-L --spread -P --syscall nanosleep",
                           "-L -i 0.15", "-L --spread --by pid"},
                          fmt::format("--restarts 0 --steps {}", kSteps));
  const std::map<std::string, std::uint64_t> errors = {{"unlinkat", seen.number("failed")},
                                                       {"fchdir", seen.number("bad_descriptors")},
                                                       {"read", seen.number("interrupted")},
                                                       {"getppid", 0},
                                                       {"nanosleep", 0}};
  auto within = [&](const Json& row, const char* key, std::uint64_t percent, double error) {
    auto asked = static_cast<double>((kSteps * percent + 99) / 100 * kMs);
    auto measured = seen.truth[fmt::format("steps_p{}_ns", percent).c_str()].real();
    EXPECT_GE(row[key].real(), asked * (1 - error)) << key;
    EXPECT_LE(row[key].real(), measured * (1 + error)) << key;
  };
  for (std::size_t run : {0, 1, 3}) {
    SCOPED_TRACE(run);
    auto row =
        run == 3 ? only(seen.body(3)) : line_with(seen.body(run), {{"syscall", "nanosleep"}});
    EXPECT_EQ(row["count"].u64(), kSteps);
    EXPECT_GE(row["total_ns"].u64(), kSteps * (kSteps + 1) / 2 * kMs);
    EXPECT_LE(row["total_ns"].u64(), seen.number("steps_ns"));
    EXPECT_EQ(row["average_ns"].u64(), row["total_ns"].u64() / kSteps);
    within(row, "min_ns", 1, 0);
    within(row, "max_ns", 100, 0);
    EXPECT_EQ(row.has("p50_ns"), run != 0);
    if (!run) continue;
    within(row, "p50_ns", 50, 1. / 128);
    within(row, "p95_ns", 95, 1. / 128);
    within(row, "p99_ns", 99, 1. / 128);
  }
  for (std::size_t run : {0, 1})
    for (auto& [call, failed] : errors) EXPECT_EQ(sum_of(seen.report(run), call, "errors"), failed);
  EXPECT_EQ(only(seen.body(2))["errors"].u64(), seen.report(0).sum("errors"));
  // Each sees the calls from when it was attached on.
  expect_between(only(seen.body(5))["count"].u64(), seen.report(1).sum("count") - 3.,
                 seen.report(1).sum("count") + 3.);
  EXPECT_EQ(only(seen.body(5))["errors"].u64(), seen.report(1).sum("errors"));
  // Each interval has its own shortest and longest call.
  auto parts = lines_with(seen.body(4), {{"syscall", "nanosleep"}});
  ASSERT_GE(parts.size(), 3u);
  EXPECT_EQ(sum(parts, "count"), kSteps);
  within(parts.front(), "min_ns", 1, 0);
  EXPECT_LT(parts.front()["min_ns"].u64(), parts.back()["min_ns"].u64());
  within(parts.back(), "max_ns", 100, 0);
}

TOOL_TEST(Syscount, ByProcessAndCallsByName) {
  auto seen = count_calls({"-P", {}, "--syscall getppid,fchdir", "-L --syscall clock_nanosleep"},
                          "--comm sc-workload");
  auto row = only(seen.body());
  expect_fields(row, seen.filled("pid {pid} comm sc-workload"));
  EXPECT_FALSE(row.has("syscall"));
  EXPECT_EQ(row["count"].u64(), seen.report(1).sum("count"));
  EXPECT_EQ(seen.shown(2), 2u);
  expect_counts(seen.report(2),
                {{"getppid", seen.number("calls")}, {"fchdir", seen.number("bad_descriptors")}});
  EXPECT_EQ(seen.shown(3), 1u);
  expect_counts(seen.report(3), {{"clock_nanosleep", seen.number("sleeps")}});
  EXPECT_GE(seen.report(3).sum("total_ns"), seen.number("asked_ns"));
}

TOOL_TEST(Syscount, TableOf32Bits) {
  if (!has_32_bit_calls()) throw Skip("this kernel has no calls of 32-bit programs");
  auto seen = count_calls({{}, "--syscall getppid"}, "--compat");
  for (std::size_t i : {0, 1}) {
    expect_counts(seen.report(i), {{"getppid", seen.number("calls")}});
    auto others = seen.body(i);
    std::erase_if(others, [](auto& row) { return !of_32_bits(row); });
    for (auto& row : others) EXPECT_EQ(row["syscall"].str(), "getppid");
    expect_sums(others, seen.truth, {{"count", "calls"}});
  }
}

TOOL_TEST(Syscount, Filters) {
  Cgroup cgroup;
  Scene wanted("syscalls --comm sc-wanted"), other("syscalls");
  cgroup.add(wanted.workload().pid());
  auto above = std::filesystem::path(cgroup.path()).parent_path().string();
  const Strings filters[] = {"-p {pid}",
                             "-t {pid}",
                             "--comm sc-wanted",
                             "-c " + cgroup.path(),
                             "-L -c " + cgroup.path(),
                             "--comm sc-wanted -c " + above};
  for (auto& filter : filters) wanted.trace("syscount --json --strict" + filter);
  wanted.trace("syscount --json --ppid {pid}");
  wanted.trace("syscount --json -u 54321");
  other.finish();
  auto seen = wanted.finish();
  for (std::size_t i = 0; i < std::size(filters); i++) {
    SCOPED_TRACE(join(filters[i]));
    expect_counts(seen.report(i), {{"unlinkat", seen.truth["failed"].u64()}});
  }
  // Calls of its children: they stop and continue it.
  expect_counts(seen.report(6), {{"kill", 2 * seen.truth["stops"].u64()}, {"unlinkat", 0}});
  EXPECT_EQ(seen.report(7).sum("count"), 0u);
}

TOOL_TEST(Syscount, TopTextAndList) {
  auto rows_with = [](const Strings& options) {
    auto rows = lines(output_of("syscount" + options + "--" + workload_path("syscalls") +
                                "--signals 0 --restarts 0"));
    std::erase_if(rows, [](auto& line) { return line.empty() || line.starts_with('{'); });
    return rows;
  };
  auto counts = rows_with("-T 2"), slow = rows_with("-Lm -T 1"), processes = rows_with("-P");
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_TRUE(std::regex_match(counts[0], std::regex(R"(\d\d:\d\d:\d\d)"))) << counts[0];
  expect_row(counts[2], "getppid *");
  EXPECT_EQ(rows_with({}).size(), 12u) << "ten rows";
  ASSERT_EQ(slow.size(), 3u);
  expect_row(slow[2], "clock_nanosleep * * * * * *");
  EXPECT_GE(std::stod(words(slow[2]).at(2)), 60);
  expect_row(processes.at(2), "* * *");
  expect_contains(output_of("syscount -l"),
                  {": read\n", ": clock_nanosleep\n", ": futex_waitv\n", ": mseal\n"});
}

/// The calls of this name by object; of paths the last part.
Counts by_object(const Report& report) {
  Counts all;
  for (auto& row : report.body) {
    if (row.has("syscall") && row["syscall"].str() != "getppid") continue;
    auto object = row["object"].str();
    all[object.substr(object.rfind('/') + 1)] += row["count"].u64();
  }
  return all;
}

TOOL_TEST(Syscount, ProgramsAndLibrariesThatMakeTheCalls) {
  for (auto& more : {"", " --maps"}) {
    SCOPED_TRACE(more);
    const Strings tool("syscount --json --strict -p {pid} --syscall getppid");
    auto seen = watch_all({{Strings(std::string("objects --threads 20") + more),
                            {tool + "--by" + "object", tool + "--objects",
                             tool + "--objects" + "-L" + "--spread",
                             Strings("syscount --by object --json -L -p {pid}")}}})
                    .at(0);
    const Counts wanted = {{"objects", seen.number("own")},
                           {"inline_calls.so", seen.number("library")},
                           {"libc.so.6", seen.number("libc")},
                           {"[anonymous]", seen.number("made")},
                           {"memfd:objects_code", seen.number("mapped")}};
    // Mappings that another thread changes may not be found; a wrong one is never shown.
    const std::uint64_t most = *more ? sum(seen.report(1).body, "count") / 50 : 0;
    for (std::size_t i = 0; i < 3; i++) {
      auto shown = by_object(seen.report(i));
      EXPECT_LE(shown["[unknown]"], most) << i;
      shown.erase("[unknown]");
      EXPECT_EQ(shown.size(), wanted.size());
      for (auto& [object, count] : wanted) {
        EXPECT_LE(shown[object], count) << object;
        EXPECT_GE(shown[object] + most, count) << object;
      }
    }
    // All calls: those of the dynamic linker and of libc, too.
    auto all = by_object(seen.report(3));
    EXPECT_LE(all["inline_calls.so"], seen.number("library"));
    EXPECT_GE(all["inline_calls.so"] + most, seen.number("library"));
    EXPECT_GT(all["libc.so.6"], seen.number("libc"));
  }
}

// The name of a file is known after its process has ended.
TOOL_TEST(Syscount, ObjectsOfProcessesThatEnd) {
  auto report = follow(Strings("syscount --objects"), Strings("objects --threads 3"));
  EXPECT_EQ(by_object(report)["inline_calls.so"], 3u * 22u);
  EXPECT_EQ(by_object(report)["memfd:objects_code"], 3u * 55u);
  EXPECT_FALSE(lines_with(report.body, {{"syscall", "execve"}}).empty());
}

TESTS_OF(syscount, .events = {"-P -L", "syscalls --signals 0 --restarts 0"},
         .stress = count_row("syscalls --calls {n} --restarts 0", 500000, "count", "calls",
                             "-P --syscall getppid"),
         .long_run = {{.arguments = "-P -L 10"}});

}  // namespace
}  // namespace coretap::tooltest
