// writeback against the kernel's own trace of its flusher threads.
#include <filesystem>
#include <map>
#include <regex>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr int kFlushes = 5;

/// Pages by pass, from the trace: what a flusher had to write before less what it had after.
using Works = std::map<std::string, std::uint64_t>;

/// What the tool says of one work is in the trace as one or more passes: sums by device and reason
/// are the same where all of it is in both.
Works traced(const Trace& trace) {
  Works all;
  std::map<pid_t, std::int64_t> before;
  for (auto& e : trace.events()) {
    auto left = static_cast<std::int64_t>(std::stoull(e.value("nr_pages")));
    if (e.name == "writeback_start") {
      before[e.task] = left;
    } else if (auto start = before.find(e.task); start != before.end()) {
      auto bdi = e.words.substr(std::string("bdi ").size());
      all[bdi.substr(0, bdi.find(": ")) + " " + e.value("reason")] +=
          static_cast<std::uint64_t>(start->second - left);
      before.erase(start);
    }
  }
  return all;
}

/// What the trace calls a device: "259:0" where it is a disk.
std::string bdi_of(const std::string& device) {
  auto file = "/sys/block/" + device + "/dev";
  if (!std::filesystem::exists(file)) return device;
  auto text = slurp(file);
  return text.substr(0, text.find('\n'));
}

TOOL_TEST(Writeback, WhatTheKernelsOwnTraceHas) {
  require_tool("writeback");
  Workload workload("filecalls", {"--syncfs", std::to_string(kFlushes)}, kLinger);
  Trace trace(Strings{"writeback/writeback_start", "writeback/writeback_written"});
  Tracer all("writeback", {"--json", "--strict"});
  Tracer asked("writeback", {"--json", "--strict", "-p", workload.id(), "-r", "sync"});
  Tracer other("writeback", {"--json", "-p", workload.id(), "-r", "background"});
  workload.release();
  workload.truth();
  auto report = asked.stop(), everything = all.stop(), none = other.stop();
  trace.stop();
  workload.end_lingering();

  // Each flush writes the page that is dirty, and all others of the file system.
  std::uint64_t pages = 0;
  ASSERT_GE(report.body.size(), static_cast<std::size_t>(kFlushes));
  for (auto& event : report.body) {
    EXPECT_EQ(event["comm"].str(), "filecalls");
    EXPECT_EQ(event["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(event["reason"].str(), "sync");
    EXPECT_EQ(event["device"].str(), report.body[0]["device"].str());
    pages += event["written_pages"].u64();
  }
  EXPECT_GE(pages, static_cast<std::uint64_t>(kFlushes));
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), static_cast<std::uint64_t>(kFlushes));

  // The trace began before the tool and ended after it.
  auto kernel = traced(trace);
  Works tool;
  for (auto& event : everything.body)
    tool[bdi_of(event["device"].str()) + " " + event["reason"].str()] +=
        event["written_pages"].u64();
  EXPECT_FALSE(tool.empty());
  for (auto& [work, n] : tool) {
    EXPECT_LE(n, kernel[work]) << work;
  }
  EXPECT_GE(tool[bdi_of(report.body[0]["device"].str()) + " sync"], pages);
}

TOOL_TEST(Writeback, SleepsOfAWriterThatIsTooFast) {
  require_tool("writeback");
  if (!in_guest()) throw Skip("few dirty pages for the whole machine: a guest's only");
  Workload workload("throttled", {}, kLinger);
  Trace trace("writeback/balance_dirty_pages");
  Tracer mine("writeback", {"--throttle", "--json", "--strict", "-p", workload.id()});
  Tracer all("writeback", {"--throttle", "--json", "--strict"});
  Tracer other("writeback", {"--throttle", "--json", "-p", "1"});
  Tracer text("writeback", {"--throttle", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = mine.stop(), everybody = all.stop(), none = other.stop();
  auto table = text.stop_text();
  trace.stop();
  workload.end_lingering();

  std::uint64_t sleeps = 0, total_ms = 0, longest_ms = 0;
  std::string bdi;
  for (auto& e : trace.events(workload.pid())) {
    auto ms = std::stoll(e.value(" pause"));  // not paused, dirtied_pause
    if (ms <= 0) continue;
    sleeps++;
    total_ms += static_cast<std::uint64_t>(ms);
    longest_ms = std::max(longest_ms, static_cast<std::uint64_t>(ms));
    bdi = e.words.substr(std::string("bdi ").size());
    bdi.resize(bdi.find(": "));
  }
  std::printf("%ju sleeps of %ju ms, in %ju writes, %ju ms off the CPU\n", sleeps, total_ms,
              truth["writes"].u64(), truth["off_cpu_ns"].u64() / 1'000'000);
  ASSERT_GE(sleeps, 5u) << "the writer was not slowed down";
  ASSERT_EQ(report.body.size(), 1u);
  auto& row = report.body[0];
  EXPECT_EQ(row["sleeps"].u64(), sleeps);
  EXPECT_EQ(row["total_ns"].u64(), total_ms * 1'000'000);
  EXPECT_EQ(row["max_ns"].u64(), longest_ms * 1'000'000);
  EXPECT_EQ(row["comm"].str(), "throttled");
  EXPECT_EQ(row["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
  EXPECT_EQ(bdi_of(row["device"].str()), bdi);
  EXPECT_TRUE(std::regex_search(
      table, std::regex("DEVICE +SLEEPS +TOTAL\\(ms\\) +MAX\\(ms\\) COMM +PID *\n" +
                        row["device"].str() + " +" + std::to_string(sleeps) + " ")))
      << table;

  // By the writer's own clocks it was off the CPU for it; a sleep may end a tick (10 ms at most)
  // early, and the writer waits for other things, too.
  auto off_cpu = truth["off_cpu_ns"].u64();
  EXPECT_LE(row["total_ns"].u64(), off_cpu + sleeps * 10'000'000);
  EXPECT_GE(row["total_ns"].u64(), off_cpu / 4);

  bool found = false;
  for (auto& line : everybody.body) found |= line["pid"].u64() == row["pid"].u64();
  EXPECT_TRUE(found);
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), sleeps);
}

TOOL_TEST(Writeback, Text) {
  require_tool("writeback");
  EXPECT_EQ(header_of("writeback", {}),
            (Strings{"TIME", "DEVICE", "PAGES", "REASON", "ms", "COMM", "PID"}));
  EXPECT_EQ(run({tool_path("writeback"), "-r", "nothing"}).status, 2);
  EXPECT_EQ(run({tool_path("writeback"), "--throttle", "-r", "sync"}).status, 2);
}

const DeclareTests kWriteback{{
    .name = "writeback",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"--throttle"}}},
    .events = {{}, "filecalls --syncfs 3"},
    .stress = {.workload = "filecalls --syncfs {n}",
               .events = 6,
               .truth = nullptr,
               .tiny = "--ring-size 4096",
               .kernel_event = "writeback/writeback_queue"},
    .long_run = {{}, {.arguments = "--throttle", .of = "throttle"}},
}};

}  // namespace
}  // namespace coretap::tooltest
