// writeback against the kernel's own trace of its flusher threads.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Pages by pass, from the trace: the flusher's pages to write before minus those after.
using Works = std::map<std::string, std::uint64_t>;

std::string bdi_of(const Trace::Event& event) {
  auto text = event.words.substr(std::string("bdi ").size());
  return text.substr(0, text.find(": "));
}

/// The trace's name of a device: "259:0" for a disk.
std::string bdi_of(const std::string& device) {
  auto file = "/sys/block/" + device + "/dev";
  return std::filesystem::exists(file) ? lines(slurp(file)).at(0) : device;
}

/// One work of the tool is one or more passes in the trace: sums by device and reason are equal if
/// both have all of it.
Works traced_works(const Trace& trace) {
  Works all;
  std::map<pid_t, std::int64_t> before;
  for (auto& e : trace.events()) {
    auto left = static_cast<std::int64_t>(std::stoull(e.value("nr_pages")));
    if (e.name == "writeback_start") {
      before[e.task] = left;
    } else if (auto start = before.find(e.task); start != before.end()) {
      all[bdi_of(e) + " " + e.value("reason")] += static_cast<std::uint64_t>(start->second - left);
      before.erase(start);
    }
  }
  return all;
}

TOOL_TEST(Writeback, WhatTheKernelsOwnTraceHas) {
  constexpr std::uint64_t kFlushes = 5;
  Scene scene("filecalls --syncfs " + std::to_string(kFlushes));
  Trace trace(Strings("writeback/writeback_start writeback/writeback_written"));
  scene.trace("writeback --json --strict");
  scene.trace("writeback --json --strict -p {pid} -r sync");
  scene.trace("writeback --json -p {pid} -r background");
  auto seen = scene.finish();
  trace.stop();
  auto everything = seen.report(0), asked = seen.report(1), none = seen.report(2);

  // Each flush writes the dirty page, and all others of the file system.
  ASSERT_GE(asked.body.size(), kFlushes);
  auto device = asked.body[0]["device"].str();
  for (auto& event : asked.body)
    expect_fields(
        event, {{"comm", "filecalls"}, {"pid", seen.pid}, {"reason", "sync"}, {"device", device}});
  auto pages = asked.sum("written_pages");
  EXPECT_GE(pages, kFlushes);
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), kFlushes);

  // The trace started before the tool and ended after it.
  auto kernel = traced_works(trace);
  Works tool;
  for (auto& event : everything.body)
    tool[bdi_of(event["device"].str()) + " " + event["reason"].str()] +=
        event["written_pages"].u64();
  EXPECT_FALSE(tool.empty());
  for (auto& [work, n] : tool) EXPECT_LE(n, kernel[work]) << work;
  EXPECT_GE(tool[bdi_of(device) + " sync"], pages);
}

TOOL_TEST(Writeback, SleepsOfAWriterThatIsTooFast) {
  if (!in_guest()) throw Skip("few dirty pages for the whole machine: a guest's only");
  Scene scene("throttled");
  Trace trace("writeback/balance_dirty_pages");
  for (std::string options :
       {"--json --strict -p {pid}", "--json --strict", "--json -p 1", "-p {pid}"})
    scene.trace("writeback --throttle " + options);
  auto seen = scene.finish();
  trace.stop();

  std::uint64_t sleeps = 0, total_ms = 0, longest_ms = 0;
  std::string bdi;
  for (auto& e : trace.events(static_cast<pid_t>(seen.pid))) {
    auto pause = std::stoll(e.value(" pause"));  // not paused, dirtied_pause
    if (pause <= 0) continue;
    auto ms = static_cast<std::uint64_t>(pause);
    sleeps++;
    total_ms += ms;
    longest_ms = std::max(longest_ms, ms);
    bdi = bdi_of(e);
  }
  auto off_cpu = seen.truth["off_cpu_ns"].u64();
  std::printf("%ju sleeps of %ju ms, in %ju writes, %ju ms off the CPU\n", sleeps, total_ms,
              seen.truth["writes"].u64(), off_cpu / 1'000'000);
  ASSERT_GE(sleeps, 5u) << "the writer was not slowed down";
  auto row = line_with(seen.report().body, {});
  auto device = row["device"].str();
  expect_fields(
      row, {is("sleeps", sleeps), is("total_ns", total_ms * 1'000'000),
            is("max_ns", longest_ms * 1'000'000), is("comm", "throttled"), is("pid", seen.pid)});
  EXPECT_EQ(bdi_of(device), bdi);
  std::regex table("DEVICE +SLEEPS +TOTAL\\(ms\\) +MAX\\(ms\\) COMM +PID *\n" + device + " +" +
                   std::to_string(sleeps) + " ");
  EXPECT_TRUE(std::regex_search(seen.text(3), table)) << seen.text(3);

  // By the writer's own clocks it was off CPU that long; a sleep may end a tick (10 ms at most)
  // early, and the writer has other waits, too.
  EXPECT_LE(row["total_ns"].u64(), off_cpu + sleeps * 10'000'000);
  EXPECT_GE(row["total_ns"].u64(), off_cpu / 4);

  EXPECT_FALSE(seen.report(1).of_process(seen.pid).empty());
  EXPECT_TRUE(seen.report(2).body.empty());
  EXPECT_GE(seen.report(2).lost("filtered"), sleeps);
}

TESTS_OF(writeback, .reports = {{ReportKind::events}, {ReportKind::aggregate, {"--throttle"}}},
         .events = {{}, "filecalls --syncfs 3"},
         .stress = event_row("filecalls --syncfs {n}", 6, {})
                       .by_kernel_event("writeback/writeback_queue"),
         .long_run = {{}, {.arguments = "--throttle", .of = "throttle"}});

}  // namespace
}  // namespace coretap::tooltest
