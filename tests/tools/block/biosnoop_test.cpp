// biosnoop against a process that makes a known number of direct reads and writes, one at a time.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// A loop device each: no other process uses it, and its sectors begin at 0. The workloads linger
// until the tracers have ended: removing a workload's file is I/O of its own.
constexpr std::uint64_t kSector = 512;

std::string disk_of(const Workload& workload) { return workload.ready()["disk"].str(); }

std::unique_ptr<Tracer> tracer(const Workload& workload, Strings options,
                               const char* format = "--json") {
  if (*format) options.insert(options.begin(), format);
  options.insert(options.end(), {"-d", disk_of(workload)});
  return std::make_unique<Tracer>("biosnoop", options);
}
std::unique_ptr<Tracer> of_process(const Workload& workload, Strings options,
                                   const char* format = "--json") {
  options.insert(options.end(), {"-p", workload.id()});
  return tracer(workload, options, format);
}

/// What holds for all I/O of a process that is called as its program.
void expect_owner(const Json& event, const Workload& workload, const char* comm = "blockio") {
  EXPECT_EQ(event["type"].str(), "event");
  EXPECT_EQ(event["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
  EXPECT_EQ(event["tid"].u64(), static_cast<std::uint64_t>(workload.pid()));
  EXPECT_EQ(event["uid"].u64(), 0u);
  EXPECT_EQ(event["comm"].str(), comm);
  EXPECT_EQ(event["disk"].str(), disk_of(workload));
  EXPECT_TRUE(event["error"].is_null());
  EXPECT_GT(event["latency_ns"].u64(), 0u);
  EXPECT_TRUE(event["flags"].str().find("0x") == std::string::npos) << event["flags"].str();
}

bool is_flush(const Json& event) { return event["flags"].str().ends_with("Flush"); }

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TOOL_TEST(Biosnoop, ShowsEveryWriteOfAProcess) {
  require_tool("biosnoop");
  Workload workload("blockio", {"--make", "loop", "--count", "40"}, kLinger);
  auto full = of_process(workload, {"--strict", "-Q", "-P"}), plain = of_process(workload, {});
  workload.release();
  auto truth = workload.truth();
  auto report = full->stop(), bare = plain->stop();
  ASSERT_EQ(report.body.size(), truth["count"].u64());
  EXPECT_EQ(bare.body.size(), truth["count"].u64());
  EXPECT_EQ(report.ledger["shown"].u64(), truth["count"].u64());
  std::uint64_t next = 0, took = 0, last = 0, sequential = 0;
  for (auto& event : report.body) {
    expect_owner(event, workload);
    EXPECT_EQ(event["rwbs"].str(), "WS");
    EXPECT_TRUE(event["flags"].str().ends_with("Write")) << event["flags"].str();
    EXPECT_TRUE(contains(event["flags"].str(), "Sync-"));
    EXPECT_EQ(event["bytes"].u64(), truth["size"].u64());
    EXPECT_EQ(event["sector"].u64(), next);
    EXPECT_GT(event["monotonic_ns"].u64(), last);
    last = event["monotonic_ns"].u64();
    next += truth["size"].u64() / kSector;
    took += event["latency_ns"].u64() + event["queued_ns"].u64();
    sequential += !event["pattern"].is_null() && event["pattern"].str() == "S";
  }
  EXPECT_LE(took, truth["took_ns"].u64()) << "one at a time";
  EXPECT_GE(sequential + 3, truth["count"].u64()) << "the first has none before it";
  for (auto& event : bare.body) {
    EXPECT_TRUE(event["queued_ns"].is_null()) << "not measured";
    EXPECT_TRUE(event["pattern"].is_null());
  }
}

TOOL_TEST(Biosnoop, TimeInTheQueueOfAScheduler) {
  require_tool("biosnoop");
  // Loop devices have no schedulers before 5.15.
  Workload workload("blockio", {"--make", "loop", "--scheduler", "mq-deadline", "--count", "20"},
                    kLinger);
  auto queued = of_process(workload, {"--strict", "-Q"});
  workload.release();
  auto truth = workload.truth();
  auto report = queued->stop();
  ASSERT_EQ(report.body.size(), truth["count"].u64());
  std::uint64_t took = 0;
  for (auto& event : report.body) {
    EXPECT_GT(event["queued_ns"].u64(), 0u);
    took += event["latency_ns"].u64() + event["queued_ns"].u64();
  }
  EXPECT_LE(took, truth["took_ns"].u64());
}

TOOL_TEST(Biosnoop, RandomReads) {
  require_tool("biosnoop");
  Workload workload(
      "blockio",
      {"--make", "loop", "--op", "read", "--count", "40", "--pattern", "random", "--span", "16m"},
      kLinger);
  auto traced = of_process(workload, {"--strict", "--pattern"});
  workload.release();
  auto truth = workload.truth();
  auto report = traced->stop();
  ASSERT_EQ(report.body.size(), truth["count"].u64());
  std::uint64_t random = 0;
  for (auto& event : report.body) {
    expect_owner(event, workload);
    EXPECT_TRUE(event["rwbs"].str().starts_with("R")) << event["rwbs"].str();
    EXPECT_EQ(event["bytes"].u64(), truth["size"].u64());
    random += !event["pattern"].is_null() && event["pattern"].str() == "R";
  }
  EXPECT_GT(random, truth["count"].u64() / 2);
}

// Each part that a large request is split into is one I/O, and shown once, with its whole length.
TOOL_TEST(Biosnoop, WholeRequests) {
  require_tool("biosnoop");
  Workload workload(
      "blockio",
      {"--make", "loop", "--op", "read", "--count", "4", "--size", "6m", "--span", "12m"}, kLinger);
  auto traced = of_process(workload, {"--strict"});
  workload.release();
  auto truth = workload.truth();
  auto report = traced->stop();
  EXPECT_EQ(report.sum("bytes"), truth["bytes"].u64());
  EXPECT_LE(report.body.size(), truth["diskstats"]["reads"].u64());
  for (auto& event : report.body) expect_owner(event, workload);
}

TOOL_TEST(Biosnoop, UnfilteredShowsWhatDiskstatsCounts) {
  require_tool("biosnoop");
  Workload workload("blockio", {"--make", "loop", "--count", "40", "--fsync"}, kLinger);
  auto disk = disk_of(workload);
  auto before = diskstats_requests(disk);
  auto traced = tracer(workload, {"--strict"});
  Tracer latency("biolatency", {"--json", "--strict", "-d", disk});
  workload.release();
  auto truth = workload.truth();
  auto report = traced->stop();
  auto histogram = latency.stop();
  auto growth = diskstats_requests(disk) - before;
  EXPECT_GE(report.body.size(), truth["count"].u64());
  EXPECT_LE(report.body.size(), growth + 2) << "requests under way at either end";
  // Both count the same requests; they look at the clock one after the other.
  EXPECT_EQ(report.body.size(), histogram.sum("count"));
  EXPECT_GE(2 * report.sum("latency_ns"), histogram.sum("total_ns"));
  EXPECT_LE(report.sum("latency_ns"), 2 * histogram.sum("total_ns"));
}

// A flush that the kernel makes is its submitter's, and has no place on the disk.
TOOL_TEST(Biosnoop, FlushesAreTheSubmitters) {
  require_tool("biosnoop");
  Workload workload("blockio", {"--make", "loop", "--op", "flush", "--count", "20"}, kLinger);
  auto traced = of_process(workload, {"--strict"});
  workload.release();
  auto truth = workload.truth();
  auto report = traced->stop();
  auto flushes = truth["diskstats"]["flushes"].u64();
  if (!flushes) throw Skip("this loop device has no cache to flush");
  EXPECT_EQ(report.body.size(), truth["count"].u64() + flushes);
  std::uint64_t shown = 0;
  for (auto& event : report.body) {
    expect_owner(event, workload);
    if (!is_flush(event)) continue;
    shown++;
    EXPECT_TRUE(event["sector"].is_null());
    EXPECT_EQ(event["bytes"].u64(), 0u);
    EXPECT_TRUE(event["rwbs"].str().starts_with("F")) << event["rwbs"].str();
  }
  EXPECT_EQ(shown, flushes);
}

// The flush behind the data of a synchronous write is its submitter's too.
TOOL_TEST(Biosnoop, SynchronousWrites) {
  require_tool("biosnoop");
  Workload workload("blockio", {"--make", "loop", "--sync", "--count", "20"}, kLinger);
  auto traced = of_process(workload, {"--strict"}), everybody = tracer(workload, {"--strict"});
  workload.release();
  auto truth = workload.truth();
  auto report = traced->stop();
  auto writes = std::count_if(report.body.begin(), report.body.end(),
                              [](auto& event) { return !is_flush(event); });
  EXPECT_EQ(static_cast<std::uint64_t>(writes), truth["count"].u64());
  EXPECT_EQ(report.body.size() - truth["count"].u64(), truth["diskstats"]["flushes"].u64());
  for (auto& event : report.body) expect_owner(event, workload);
  EXPECT_EQ(everybody->stop().body.size(), report.body.size());
}

TOOL_TEST(Biosnoop, Discards) {
  require_tool("biosnoop");
  Workload workload(
      "blockio", {"--make", "loop", "--op", "discard", "--count", "10", "--size", "64k"}, kLinger);
  auto traced = of_process(workload, {"--strict"});
  workload.release();
  auto truth = workload.truth();
  auto report = traced->stop();
  EXPECT_EQ(report.sum("bytes"), truth["bytes"].u64());
  for (auto& event : report.body) {
    expect_owner(event, workload);
    EXPECT_TRUE(event["rwbs"].str().starts_with("D")) << event["rwbs"].str();
    EXPECT_TRUE(event["flags"].str().ends_with("Discard")) << event["flags"].str();
  }
}

TOOL_TEST(Biosnoop, MinimumLatency) {
  require_tool("biosnoop");
  Workload workload("blockio", {"--make", "loop", "--count", "60"}, kLinger);
  auto all = of_process(workload, {"-m", "0"}), some = of_process(workload, {"-m", "1"}),
       none = of_process(workload, {"--min", "600000", "--strict"});
  workload.release();
  auto count = workload.truth()["count"].u64();
  auto each = all->stop(), slow = some->stop(), nothing = none->stop();
  EXPECT_EQ(each.body.size(), count);
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_GE(nothing.lost("filtered"), count);
  for (auto& event : slow.body) EXPECT_GE(event["latency_ns"].u64(), 1'000'000u);
  auto above = [&](std::uint64_t ns) {
    return static_cast<std::size_t>(
        std::count_if(each.body.begin(), each.body.end(),
                      [&](auto& event) { return event["latency_ns"].u64() >= ns; }));
  };
  EXPECT_GE(slow.body.size(), above(2'000'000));
  EXPECT_LE(slow.body.size(), above(500'000));
}

TOOL_TEST(Biosnoop, Filters) {
  require_tool("biosnoop");
  Cgroup cgroup;
  Workload workload("blockio", {"--make", "loop", "--count", "30", "--comm", "bio-by-name"},
                    kLinger),
      other("blockio", {"--make", "loop", "--count", "20"}, kLinger);
  cgroup.add(workload.pid());
  std::vector<std::unique_ptr<Tracer>> finding, missing;
  auto find = [&](Strings options) {
    options.insert(options.begin(), {"--json", "--strict"});
    finding.push_back(std::make_unique<Tracer>("biosnoop", options));
  };
  auto miss = [&](Strings options) {
    options.insert(options.begin(), "--json");
    missing.push_back(std::make_unique<Tracer>("biosnoop", options));
  };
  find({"-n", "bio-by-name"});
  find({"--tid", workload.id()});
  find({"-c", cgroup.path(), "-d", disk_of(workload)});
  miss({"-p", other.id(), "-d", disk_of(workload)});
  miss({"-p", other.id(), "-c", cgroup.path()});
  miss({"-u", "54321", "-d", disk_of(workload)});
  other.release();
  other.truth();
  workload.release();
  auto count = workload.truth()["count"].u64();
  for (std::size_t i = 0; i < finding.size(); i++) {
    SCOPED_TRACE(i);
    auto report = finding[i]->stop();
    EXPECT_EQ(report.body.size(), count);
    for (auto& event : report.body) expect_owner(event, workload, "bio-by-name");
  }
  for (std::size_t i = 0; i < missing.size(); i++) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(missing[i]->stop().body.empty());
  }
}

TOOL_TEST(Biosnoop, FollowsACommand) {
  require_tool("biosnoop");
  auto report = follow("biosnoop", "blockio", {"--count", "30"});
  // It writes as much before, to make the file.
  EXPECT_GE(report.sum("bytes"), 2 * (*report.truth)["bytes"].u64());
}

TOOL_TEST(Biosnoop, Columns) {
  require_tool("biosnoop");
  EXPECT_EQ(header_of("biosnoop", {}),
            (Strings{"TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"}));
  EXPECT_EQ(header_of("biosnoop", {"-Q"}), (Strings{"TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR",
                                                    "BYTES", "QUE(ms)", "LAT(ms)"}));
  EXPECT_EQ(header_of("biosnoop", {"-t", "-P"}),
            (Strings{"TIMESTAMP", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "P", "LAT(ms)"}));
}

TOOL_TEST(Biosnoop, TextAndCsv) {
  require_tool("biosnoop");
  Workload workload("blockio", {"--make", "loop", "--count", "25"}, kLinger);
  auto text = of_process(workload, {}, ""), full = of_process(workload, {"-t", "-Q", "-P"}, "");
  auto csv = of_process(workload, {}, "--csv");
  workload.release();
  auto count = workload.truth()["count"].u64();
  auto check = [&](const std::string& shown, const std::string& times, const std::string& more) {
    EXPECT_TRUE(safe_for_terminals(shown));
    EXPECT_EQ(lines_of(shown), count + 1) << shown;
    std::regex row(times + " +blockio +" + workload.id() + " +" + disk_of(workload) +
                   R"( +WS +\d+ +4096 +)" + more + R"(\d+\.\d{3})");
    std::istringstream rows(shown);
    std::string line;
    std::getline(rows, line);
    while (std::getline(rows, line)) EXPECT_TRUE(std::regex_match(line, row)) << line;
  };
  check(text->stop_text(), R"(\d+\.\d{6})", "");
  check(full->stop_text(), R"(\d\d:\d\d:\d\d\.\d{3})", R"([-SR] +\d+\.\d{3} +)");

  auto table = csv->stop_text();
  EXPECT_EQ(lines_of(table), count + 1);
  EXPECT_TRUE(table.starts_with(
      "time,monotonic_ns,comm,pid,disk,rwbs,sector,bytes,pattern,"
      "queued_ns,latency_ns,error,flags,tid,uid,cgroup_id,cgroup,container,container_id,"
      "pod,unit\n"))
      << table.substr(0, table.find('\n'));
  EXPECT_TRUE(
      contains(table, ",blockio," + workload.id() + "," + disk_of(workload) + ",WS,0,4096,,,"))
      << table;
}

const DeclareTests kBiosnoop{{
    .name = "biosnoop",
    .events = {"-Q -P", "blockio --count 5"},
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .truth = "count",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "-Q"}},
}};

}  // namespace
}  // namespace coretap::tooltest
