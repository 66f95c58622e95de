// biolatency against a process that makes a known number of direct reads and writes, one at a time.
#include <filesystem>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// A loop device each: no other process uses it, and the file system's own I/O is elsewhere.
// The workloads linger until the tracers have ended: removing a workload's file is I/O of its own.
constexpr std::uint64_t kMicrosecond = 1000, kMillisecond = 1'000'000;

std::string disk_of(const Workload& workload) { return workload.ready()["disk"].str(); }

Report trace(Workload& workload, Strings options, Json* truth) {
  options.insert(options.end(),
                 {"--json", "--strict", "-p", workload.id(), "-d", disk_of(workload)});
  Tracer tracer("biolatency", options);
  workload.release();
  *truth = workload.truth();
  return tracer.stop();
}

std::string another_disk(const std::string& disk) {
  for (auto& entry : std::filesystem::directory_iterator("/sys/block"))
    if (entry.path().filename() != disk) return entry.path().filename();
  return {};
}

TOOL_TEST(Biolatency, CountsTheWritesOfAProcess) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "40"}, kLinger);
  Json truth;
  auto report = trace(workload, {}, &truth);
  ASSERT_EQ(report.body.size(), 1u);
  auto& histogram = report.body[0];
  EXPECT_EQ(histogram["type"].str(), "histogram");
  check_histogram(histogram, kMicrosecond);
  // One process writes a block at a time: no merge, no split.
  EXPECT_EQ(histogram["count"].u64(), truth["count"].u64());
  EXPECT_LE(histogram["count"].u64(), truth["diskstats"]["writes"].u64());
  EXPECT_LE(histogram["total_ns"].u64(), truth["took_ns"].u64());
  EXPECT_GT(histogram["total_ns"].u64(), 0u);
  EXPECT_EQ(report.ledger["shown"].u64(), truth["count"].u64());
  EXPECT_FALSE(report.ledger["data_lost"].boolean());
}

TOOL_TEST(Biolatency, CountsTheReadsOfAProcess) {
  require_tool("biolatency");
  Workload workload("blockio",
                    {"--make", "loop", "--op", "read", "--count", "40", "--pattern", "random"},
                    kLinger);
  Json truth;
  auto report = trace(workload, {"-F"}, &truth);
  ASSERT_EQ(report.body.size(), 1u) << "only reads were made";
  EXPECT_EQ(report.sum("count"), truth["count"].u64());
  EXPECT_LE(report.sum("total_ns"), truth["took_ns"].u64());
  EXPECT_TRUE(report.body[0]["flags"].str().ends_with("Read")) << report.body[0]["flags"].str();
}

// Requests larger than the device takes are split; each part is one request, and complete only
// once.
TOOL_TEST(Biolatency, CountsWholeRequests) {
  require_tool("biolatency");
  Workload workload(
      "blockio",
      {"--make", "loop", "--op", "read", "--count", "4", "--size", "6m", "--span", "12m"}, kLinger);
  Json truth;
  auto report = trace(workload, {}, &truth);
  auto largest = truth["max_sectors_kb"].u64() * 1024;
  auto least = truth["count"].u64() * ((truth["size"].u64() + largest - 1) / largest);
  EXPECT_GE(report.sum("count"), least);
  EXPECT_LE(report.sum("count"), truth["diskstats"]["reads"].u64());
}

// Flushes that the kernel makes of what a process submits are that process's.
TOOL_TEST(Biolatency, FlushesAreTheSubmitters) {
  require_tool("biolatency");
  for (const Strings& how : {Strings{"--op", "flush"}, Strings{"--sync"}}) {
    SCOPED_TRACE(how[0]);
    Strings arguments{"--make", "loop", "--count", "20"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    Workload workload("blockio", arguments, kLinger);
    Json truth;
    auto report = trace(workload, {"-F"}, &truth);
    auto flushes = truth["diskstats"]["flushes"].u64();
    if (!flushes) throw Skip("this loop device has no cache to flush");
    std::uint64_t shown = 0;
    for (auto& line : report.body)
      if (line["flags"].str().ends_with("Flush")) shown += line["count"].u64();
    EXPECT_EQ(shown, flushes);
    EXPECT_EQ(report.sum("count"), truth["count"].u64() + flushes);
  }
}

TOOL_TEST(Biolatency, UnfilteredCountsWhatDiskstatsCounts) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "40"}, kLinger);
  auto disk = workload.ready()["disk"].str();
  auto before = diskstats_requests(disk);
  Tracer tracer("biolatency", {"--json", "--strict", "-d", disk});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto growth = diskstats_requests(disk) - before;
  EXPECT_GE(report.sum("count"), truth["count"].u64());
  EXPECT_LE(report.sum("count"), growth + 2) << "requests under way at either end";
}

TOOL_TEST(Biolatency, NamesDisksAndFlags) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "20"}, kLinger);
  Json truth;
  auto report = trace(workload, {"-D", "-F"}, &truth);
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["disk"].str(), truth["disk"].str());
  auto flags = report.body[0]["flags"].str();
  EXPECT_TRUE(flags.ends_with("Write")) << flags;
  EXPECT_TRUE(contains(flags, "Sync-")) << flags;
  EXPECT_FALSE(contains(flags, "0x")) << "a flag without a name: " << flags;
  EXPECT_EQ(report.body[0]["count"].u64(), truth["count"].u64());
}

TOOL_TEST(Biolatency, FilterByDisk) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "20"}, kLinger);
  auto disk = workload.ready()["disk"].str();
  auto number = std::to_string(workload.ready()["major"].u64()) + ":" +
                std::to_string(workload.ready()["minor"].u64());
  auto other = another_disk(disk);
  Tracer by_name("biolatency", {"--json", "-p", workload.id(), "-d", disk});
  Tracer by_number("biolatency", {"--json", "-p", workload.id(), "--disk", number});
  std::unique_ptr<Tracer> elsewhere;
  if (!other.empty())
    elsewhere =
        std::make_unique<Tracer>("biolatency", Strings{"--json", "-p", workload.id(), "-d", other});
  workload.release();
  auto count = workload.truth()["count"].u64();
  EXPECT_EQ(by_name.stop().sum("count"), count);
  EXPECT_EQ(by_number.stop().sum("count"), count);
  if (elsewhere) {
    EXPECT_EQ(elsewhere->stop().sum("count"), 0u) << other << " instead of " << disk;
  }
}

TOOL_TEST(Biolatency, UnknownDiskIsAUsageError) {
  auto result = run({tool_path("biolatency"), "-d", "no-such-disk"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "no-such-disk")) << result.err;
}

// Both watch the same requests.
TOOL_TEST(Biolatency, QueuedIsNeverShorter) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "40"}, kLinger);
  Tracer plain("biolatency", {"--json", "-p", workload.id(), "-d", disk_of(workload)});
  Tracer queued("biolatency", {"--json", "-Q", "-p", workload.id(), "-d", disk_of(workload)});
  workload.release();
  auto truth = workload.truth();
  auto without = plain.stop(), with = queued.stop();
  EXPECT_EQ(without.sum("count"), truth["count"].u64());
  EXPECT_EQ(with.sum("count"), truth["count"].u64());
  // Without a scheduler both begin at the issue, one program after the other, in any order.
  EXPECT_GE(with.sum("total_ns") * 100, without.sum("total_ns") * 95);
  EXPECT_LE(with.sum("total_ns"), truth["took_ns"].u64());
}

TOOL_TEST(Biolatency, UnitsCsvAndText) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "25"}, kLinger);
  Tracer json("biolatency", {"--json", "-m", "-p", workload.id(), "-d", disk_of(workload)});
  Tracer csv("biolatency", {"--csv", "-D", "-p", workload.id(), "-d", disk_of(workload)});
  Tracer text("biolatency", {"-m", "-e", "-p", workload.id(), "-d", disk_of(workload)});
  workload.release();
  auto count = workload.truth()["count"].u64();

  auto report = json.stop();
  ASSERT_EQ(report.body.size(), 1u);
  check_histogram(report.body[0], kMillisecond);
  EXPECT_EQ(report.sum("count"), count);

  std::istringstream rows(csv.stop_text());
  std::string row;
  ASSERT_TRUE(std::getline(rows, row));
  EXPECT_EQ(row, "time,disk,from_ns,below_ns,count");
  std::uint64_t total = 0;
  while (std::getline(rows, row)) total += std::stoull(row.substr(row.rfind(',') + 1));
  EXPECT_EQ(total, count);

  auto shown = text.stop_text();
  EXPECT_TRUE(contains(shown, "msecs")) << shown;
  EXPECT_TRUE(contains(shown, "distribution")) << shown;
  EXPECT_TRUE(contains(shown, "avg = ")) << shown;
  EXPECT_TRUE(contains(shown, "count: " + std::to_string(count) + "\n")) << shown;
}

TOOL_TEST(Biolatency, IntervalsLoseAndDoubleNothing) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "300", "--pause", "1"}, kLinger);
  Tracer keyed("biolatency",
               {"--json", "-D", "-p", workload.id(), "-d", disk_of(workload), "0.05"});
  Tracer plain("biolatency",
               {"--json", "-p", workload.id(), "-d", disk_of(workload), "-i", "50ms"});
  workload.release();
  auto truth = workload.truth();
  for (auto* tracer : {&keyed, &plain}) {
    auto report = tracer->stop();
    EXPECT_GT(report.body.size(), 3u) << "several reports while it went on";
    EXPECT_EQ(report.sum("count"), truth["count"].u64());
    EXPECT_LE(report.sum("total_ns"), truth["took_ns"].u64());
    for (auto& line : report.body) check_histogram(line, kMicrosecond);
  }
}

TOOL_TEST(Biolatency, HeatMapsHaveAllValues) {
  require_tool("biolatency");
  Workload workload("blockio", {"--make", "loop", "--count", "100", "--pause", "1"}, kLinger);
  TemporaryDirectory scratch;
  auto svg = scratch.path() + "/heat.svg";
  Tracer lines("biolatency", {"--heatmap", "-p", workload.id(), "-d", disk_of(workload), "0.05"});
  Tracer file("biolatency", {"--json", "--heatmap", svg, "-D", "-p", workload.id(), "-d",
                             disk_of(workload), "0.05"});
  workload.release();
  auto count = workload.truth()["count"].u64();
  auto report = file.stop();
  EXPECT_EQ(report.sum("count"), count - report.lost("unmatched"));

  std::uint64_t drawn = 0, printed = 0;
  auto picture = slurp(svg);
  for (std::size_t at = 0; (at = picture.find("data-n=\"", at)) != picture.npos; at += 8)
    drawn += std::stoull(picture.substr(at + 8));
  EXPECT_EQ(drawn, report.sum("count"));
  EXPECT_TRUE(contains(picture, ">disk = " + disk_of(workload) + "</text>"));

  std::istringstream rows(lines.stop_text());
  std::string row;
  ASSERT_TRUE(std::getline(rows, row));
  EXPECT_EQ(words(row).front() + words(row).back(), "TIMECOUNT");
  auto width = row.size();
  while (std::getline(rows, row)) {
    if (row.starts_with("TIME")) continue;
    ASSERT_EQ(row.size(), width) << row;
    printed += std::stoull(words(row).back());
  }
  EXPECT_NEAR(static_cast<double>(printed), static_cast<double>(count), 1);
}

TOOL_TEST(Biolatency, EndsAfterTheCountOfReports) {
  require_tool("biolatency");
  Tracer tracer("biolatency", {"--json", "0.1", "3"});
  auto report = tracer.finish();
  EXPECT_GE(report.body.size(), 3u);
  Tracer text("biolatency", {"-T", "0.1", "2"});
  EXPECT_EQ(text.process().wait(), 0);
}

TOOL_TEST(Biolatency, FilterByCgroup) {
  require_tool("biolatency");
  Cgroup cgroup;
  Workload inside("blockio", {"--make", "loop", "--count", "30"}, kLinger),
      outside("blockio", {"--make", "loop", "--count", "50"});
  cgroup.add(inside.pid());
  Tracer tracer("biolatency", {"--json", "--strict", "-c", cgroup.path(), "-d", disk_of(inside)});
  outside.release();
  inside.release();
  auto truth = inside.truth();
  outside.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("count"), truth["count"].u64());
  EXPECT_LE(report.sum("total_ns"), truth["took_ns"].u64());
}

TOOL_TEST(Biolatency, FilterByComm) {
  require_tool("biolatency");
  Workload named("blockio", {"--make", "loop", "--count", "30", "--comm", "bio-by-name"}, kLinger),
      other("blockio", {"--make", "loop", "--count", "20"});
  Tracer tracer("biolatency", {"--json", "--comm", "bio-by-name", "-d", disk_of(named)});
  other.release();
  named.release();
  auto count = named.truth()["count"].u64();
  other.truth();
  EXPECT_EQ(tracer.stop().sum("count"), count);
}

TOOL_TEST(Biolatency, FollowsACommand) {
  require_tool("biolatency");
  auto report = follow("biolatency", "blockio", {"--count", "30"});
  // It writes as many blocks before, to make the file.
  EXPECT_GE(report.sum("count"), 2 * (*report.truth)["count"].u64());
}

const DeclareTests kBiolatency{{
    .name = "biolatency",
    .reports = {{ReportKind::aggregate}},
    .events = {"-D -F", "blockio --count 5"},
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
