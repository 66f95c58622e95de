// biosnoop against a process that makes a known number of direct reads and writes, one at a time.
#include <fmt/format.h>

#include "disks.hpp"

namespace coretap::tooltest {
namespace {

const std::string kSnoop = "biosnoop --json -p {pid} -d {disk} ", kStrict = kSnoop + "--strict ";

/// Checks the process name and the operation letters of all I/O of a process.
void expect_owner(const Observed& seen, const std::vector<Json>& events,
                  const std::string& rwbs = "", const std::string& flag = "",
                  const char* comm = "blockio") {
  for (auto& event : events) {
    expect_fields(event,
                  fmt::format("type event pid {0} tid {0} uid 0 comm {1} disk {2} error null",
                              seen.pid, comm, seen.ready["disk"].str()));
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    auto flags = event["flags"].str();
    EXPECT_TRUE(!contains(flags, "0x") && flags.ends_with(flag)) << flags;
    EXPECT_TRUE(event["rwbs"].str().starts_with(rwbs)) << event["rwbs"].str();
  }
}

std::size_t with_pattern(const std::vector<Json>& events, const char* pattern) {
  return lines_with(events, {{"pattern", pattern}}).size();
}

TOOL_TEST(Biosnoop, ShowsEveryWriteOfAProcess) {
  auto seen = on_loop({kStrict + "-Q -P", kSnoop}, "--count 40");
  auto events = seen.body(), bare = seen.body(1);
  const auto count = seen.number("count"), size = seen.number("size");
  ASSERT_EQ(events.size(), count);
  EXPECT_EQ(bare.size(), count);
  EXPECT_EQ(seen.report().ledger["shown"].u64(), count);
  expect_owner(seen, events, "WS", "Write");
  for (std::size_t i = 0; i < count; i++) {
    expect_fields(events[i], {{"rwbs", "WS"}, {"bytes", size}, {"sector", i * size / kSector}});
    EXPECT_TRUE(contains(events[i]["flags"].str(), "Sync-"));
    EXPECT_TRUE(!i || events[i]["monotonic_ns"].u64() > events[i - 1]["monotonic_ns"].u64());
  }
  EXPECT_LE(sum(events, "latency_ns") + sum(events, "queued_ns"), seen.number("took_ns"))
      << "one at a time";
  EXPECT_GE(with_pattern(events, "S") + 3, count) << "the first has none before it";
  for (auto& event : bare) expect_fields(event, {{"queued_ns", nullptr}, {"pattern", nullptr}});
}

TOOL_TEST(Biosnoop, TimeInTheQueueOfAScheduler) {
  // Loop devices have no schedulers before 5.15.
  auto seen = on_loop({kStrict + "-Q"}, "--scheduler mq-deadline --count 20");
  auto events = seen.body();
  ASSERT_EQ(events.size(), seen.number("count"));
  for (auto& event : events) EXPECT_GT(event["queued_ns"].u64(), 0u);
  EXPECT_LE(sum(events, "latency_ns") + sum(events, "queued_ns"), seen.number("took_ns"));
}

TOOL_TEST(Biosnoop, RandomReads) {
  auto seen = on_loop({kStrict + "--pattern"}, "--op read --count 40 --pattern random --span 16m");
  auto events = seen.body();
  ASSERT_EQ(events.size(), seen.number("count"));
  expect_owner(seen, events, "R");
  for (auto& event : events) expect_same(event, seen.truth, {{"bytes", "size"}});
  EXPECT_GT(with_pattern(events, "R"), seen.number("count") / 2);
}

// Each part that a large request is split into is one I/O, and shown once, with its whole length.
TOOL_TEST(Biosnoop, WholeRequests) {
  auto seen = on_loop({kStrict}, "--op read --count 4 --size 6m --span 12m");
  expect_sums(seen.report(), seen.truth, {"bytes"});
  EXPECT_LE(seen.shown(0), seen.truth["diskstats"]["reads"].u64());
  expect_owner(seen, seen.body());
}

// A flush that the kernel adds belongs to its submitter, and has no position on the disk.
TOOL_TEST(Biosnoop, FlushesAreTheSubmitters) {
  auto seen = on_loop({kStrict}, "--op flush --count 20");
  auto flushes = seen.truth["diskstats"]["flushes"].u64();
  if (!flushes) throw Skip("this loop device has no cache to flush");
  EXPECT_EQ(seen.shown(0), seen.number("count") + flushes);
  expect_owner(seen, seen.body());
  auto shown = lines_ending(seen.body(), "flags", "Flush");
  EXPECT_EQ(shown.size(), flushes);
  expect_owner(seen, shown, "F");
  for (auto& event : shown) expect_fields(event, {{"sector", nullptr}, {"bytes", 0}});
}

// The flush after the data of a synchronous write belongs to its submitter, too.
TOOL_TEST(Biosnoop, SynchronousWrites) {
  auto seen = on_loop({kStrict, "biosnoop --json --strict -d {disk}"}, "--sync --count 20");
  auto events = seen.body();
  auto count = seen.number("count");
  EXPECT_EQ(events.size() - lines_ending(events, "flags", "Flush").size(), count);
  EXPECT_EQ(events.size() - count, seen.truth["diskstats"]["flushes"].u64());
  expect_owner(seen, events);
  EXPECT_EQ(seen.shown(1), events.size());
}

TOOL_TEST(Biosnoop, Discards) {
  auto seen = on_loop({kStrict}, "--op discard --count 10 --size 64k");
  expect_sums(seen.report(), seen.truth, {"bytes"});
  expect_owner(seen, seen.body(), "D", "Discard");
}

TOOL_TEST(Biosnoop, MinimumLatency) {
  auto seen = on_loop({kSnoop + "-m 0", kSnoop + "-m 1", kStrict + "--min 600000"}, "--count 60");
  auto each = seen.body(0), slow = seen.body(1);
  EXPECT_EQ(each.size(), seen.number("count"));
  EXPECT_TRUE(seen.body(2).empty());
  EXPECT_GE(seen.report(2).lost("filtered"), seen.number("count"));
  for (auto& event : slow) EXPECT_GE(event["latency_ns"].u64(), 1'000'000u);
  auto above = [&](std::uint64_t ns) {
    return std::ranges::count_if(each, [&](auto& e) { return e["latency_ns"].u64() >= ns; });
  };
  EXPECT_GE(std::ssize(slow), above(2'000'000));
  EXPECT_LE(std::ssize(slow), above(500'000));
}

TOOL_TEST(Biosnoop, Filters) {
  Cgroup cgroup;
  Scene scene("blockio --make loop --count 30 --comm bio-by-name");
  Scene other("blockio --make loop --count 20");
  cgroup.add(scene.workload().pid());
  auto id = other.workload().id();
  const Strings finding[] = {
      "-n bio-by-name",
      "--tid {pid}",
      "-d {disk} -c " + cgroup.path(),
  };
  const Strings missing[] = {"-d {disk} -p " + id, "-p " + id + " -c " + cgroup.path(),
                             "-d {disk} -u 54321"};
  for (auto& options : finding) scene.trace("biosnoop --json --strict" + options);
  for (auto& options : missing) scene.trace("biosnoop --json" + options);
  other.finish();
  auto seen = scene.finish();
  for (std::size_t i = 0; i < 3; i++) {
    SCOPED_TRACE(i);
    auto found = seen.report(i).body;
    EXPECT_EQ(found.size(), seen.truth["count"].u64());
    expect_owner(seen, found, "", "", "bio-by-name");
    EXPECT_TRUE(seen.report(3 + i).body.empty());
  }
}

TESTS_OF(biosnoop, .events = {"-Q -P", "blockio --count 5"},
         .stress = event_row("blockio --make loop --count {n} --span 4m", 1500, "count"),
         .long_run = {{.arguments = "-Q"}});

}  // namespace
}  // namespace coretap::tooltest
