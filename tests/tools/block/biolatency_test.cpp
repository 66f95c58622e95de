// biolatency against a process that makes a known number of direct reads and writes, one at a time.
#include "disks.hpp"

namespace coretap::tooltest {
namespace {

const std::string kOwn = "biolatency --json --strict -p {pid} -d {disk} ";

// Requests larger than the device takes are split; each part is one request, and complete only
// once.
TOOL_TEST(Biolatency, CountsWholeRequests) {
  auto seen = on_loop({kOwn}, "--op read --count 4 --size 6m --span 12m");
  auto largest = seen.number("max_sectors_kb") * 1024;
  auto least = seen.number("count") * ((seen.number("size") + largest - 1) / largest);
  EXPECT_GE(seen.report().sum("count"), least);
  EXPECT_LE(seen.report().sum("count"), seen.truth["diskstats"]["reads"].u64());
}

// A flush that the kernel adds to a process's I/O is attributed to that process.
TOOL_TEST(Biolatency, FlushesAreTheSubmitters) {
  for (std::string how : {"--op flush", "--sync"}) {
    SCOPED_TRACE(how);
    auto seen = on_loop({kOwn + "-F"}, "--count 20 " + how);
    auto flushes = seen.truth["diskstats"]["flushes"].u64();
    if (!flushes) throw Skip("this loop device has no cache to flush");
    EXPECT_EQ(sum(lines_ending(seen.body(), "flags", "Flush"), "count"), flushes);
    EXPECT_EQ(seen.report().sum("count"), seen.number("count") + flushes);
  }
}

TOOL_TEST(Biolatency, NamesDisksAndFlags) {
  for (auto& [options, end] :
       {std::pair{"--op read --pattern random", "Read"}, {"", "Sync-Write"}}) {
    auto seen = on_loop({kOwn + "-D -F"}, std::string("--count 40 ") + options);
    auto report = seen.report();
    expect_same(only(report.body), seen.truth, {"disk", "count"});
    EXPECT_LE(report.sum("total_ns"), seen.number("took_ns"));
    auto flags = report.body[0]["flags"].str();
    EXPECT_TRUE(flags.ends_with(end)) << flags;
    EXPECT_FALSE(contains(flags, "0x")) << "a flag without a name: " << flags;
  }
}

TOOL_TEST(Biolatency, FilterByDisk) {
  Scene scene("blockio --make loop --count 20");
  auto disk = scene.ready()["disk"].str();
  scene.trace("biolatency --json -p {pid} -d {disk}");
  scene.trace("biolatency --json -p {pid} --disk {major}:{minor}");
  std::string other;
  for (auto& entry : std::filesystem::directory_iterator("/sys/block"))
    if (entry.path().filename() != disk && std::filesystem::exists(entry.path() / "mq"))
      other = entry.path().filename();
  // I/O on other disks is excluded, and not counted as unmatched.
  if (!other.empty()) scene.trace("biolatency --json --strict -p {pid} -d " + other);
  auto seen = scene.finish();
  expect_sums(seen.report(0), seen.truth, {"count"});
  expect_sums(seen.report(1), seen.truth, {"count"});
  if (!other.empty()) {
    EXPECT_EQ(seen.report(2).sum("count"), 0u) << other << " instead of " << disk;
  }
}

TOOL_TEST(Biolatency, UnitsAndText) {
  auto seen =
      on_loop({"biolatency --json -m -p {pid} -d {disk}", "biolatency -m -e -p {pid} -d {disk}"},
              "--count 25");
  check_histogram(only(seen.body()), 1'000'000);
  expect_sums(seen.report(), seen.truth, {"count"});
  expect_contains(seen.text(1),
                  {"msecs", "distribution", "avg = ", seen.filled("count: {count}\n")});
}

TOOL_TEST(Biolatency, IntervalsLoseAndDoubleNothing) {
  auto seen = on_loop({"biolatency --json -D -p {pid} -d {disk} 0.05",
                       "biolatency --json -p {pid} -d {disk} -i 50ms"},
                      "--count 300 --pause 1");
  for (std::size_t tool : {0, 1}) {
    auto report = seen.report(tool);
    EXPECT_GT(report.body.size(), 3u) << "several reports while it went on";
    expect_sums(report, seen.truth, {"count"});
    EXPECT_LE(report.sum("total_ns"), seen.number("took_ns"));
    for (auto& line : report.body) check_histogram(line, 1000);
  }
}

TOOL_TEST(Biolatency, HeatMapsHaveAllValues) {
  TemporaryDirectory scratch;
  auto svg = scratch.path() + "/heat.svg";
  auto seen = on_loop({"biolatency --heatmap -p {pid} -d {disk} 0.05",
                       "biolatency --json --heatmap " + svg + " -D -p {pid} -d {disk} 0.05"},
                      "--count 100 --pause 1");
  auto count = seen.number("count");
  auto report = seen.report(1);
  EXPECT_EQ(report.sum("count"), count - report.lost("unmatched"));

  std::uint64_t drawn = 0, printed = 0;
  auto picture = slurp(svg);
  for (std::size_t at = 0; (at = picture.find("data-n=\"", at)) != picture.npos; at += 8)
    drawn += std::stoull(picture.substr(at + 8));
  EXPECT_EQ(drawn, report.sum("count"));
  expect_contains(picture, {seen.filled(">disk = {disk}</text>")});

  auto rows = lines(seen.text(0));
  EXPECT_EQ(words(rows.at(0)).front() + words(rows[0]).back(), "TIMECOUNT");
  for (auto& row : rows) {
    if (row.starts_with("TIME") || row.starts_with("FROM")) continue;
    ASSERT_EQ(row.size(), rows[0].size()) << row;
    printed += std::stoull(words(row).back());
  }
  EXPECT_NEAR(static_cast<double>(printed), static_cast<double>(count), 1);
}

TESTS_OF(biolatency, .events = {"-D -F", "blockio --count 5"},
         .stress = writes_to_loop("count", "-D"), .long_run = {{.arguments = "-D -F 10"}});

}  // namespace
}  // namespace coretap::tooltest
