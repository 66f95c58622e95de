// writeback against the kernel's own trace of its flusher threads.
#include <filesystem>
#include <map>

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
  Workload workload("filecalls", {"--syncfs", std::to_string(kFlushes)}, {.linger = true});
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

TOOL_TEST(Writeback, Text) {
  require_tool("writeback");
  EXPECT_EQ(header_of("writeback", {}),
            (Strings{"TIME", "DEVICE", "PAGES", "REASON", "ms", "COMM", "PID"}));
  EXPECT_EQ(run({tool_path("writeback"), "-r", "nothing"}).status, 2);
}

const DeclareTests declared{{
    .name = "writeback",
    .reports = {{ReportKind::events}},
    .events = {{}, {"filecalls", "--syncfs", "3"}},
    .stress = {.workload = "filecalls",
               .arguments = [](std::uint64_t n) -> Strings {
                 return {"--syncfs", std::to_string(n)};
               },
               .events = 6,
               .shown = stress::one,
               .truth = nullptr,
               .tiny = {"--ring-size", "4096"},
               .kernel_event = "writeback/writeback_queue"},
    .long_run = {{}},
}};

}  // namespace
}  // namespace coretap::tooltest
