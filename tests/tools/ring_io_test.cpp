// Tools of file I/O against a process that reads and writes through io_uring, in every way a known
// number of times.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// All requests of a ring are distinguished here, even those with the same user_data.
bool completions_name_requests() {
  auto explained = run({tool_path("filetop"), "--explain"}).out;
  return !contains(explained, "* tp_btf/io_uring_complete + ");
}

struct Run {
  Json truth;
  Report report;
};

Run trace(const std::string& tool, const Strings& options, const Strings& arguments) {
  auto seen = observe(tool + options + "--json --strict -p {pid}", "ringio" + arguments);
  return {seen.truth, seen.report()};
}

void expect_counts(const Run& run, const std::function<bool(const Json&)>& of_the_file) {
  std::map<std::string, std::uint64_t> sums;
  for (auto& line : run.report.body)
    if (of_the_file(line))
      for (auto* key : {"reads", "writes", "read_bytes", "write_bytes"})
        sums[key] += line[key].u64();
  for (auto* key : {"reads", "writes", "read_bytes", "write_bytes"})
    EXPECT_EQ(sums[key], run.truth[key].u64()) << key;
}

TOOL_TEST(RingIo, Filetop) {
  auto run = trace("filetop", {}, {"--rounds", "20", "--size", "3000"});
  expect_counts(run, [&](auto& line) { return line["file"].str() == run.truth["data"].str(); });
  for (auto& line : run.report.body) {
    EXPECT_EQ(line["pid"].u64(), run.truth["pid"].u64());
    EXPECT_EQ(line["tid"].u64(), run.truth["tid"].u64());  // not that of a worker
    EXPECT_EQ(line["comm"].str(), "ringio");
  }
}

// The kernel's own counts of the process, past the page cache.
TOOL_TEST(RingIo, FiletopCountsWhatProcCounts) {
  auto run = trace("filetop", {}, {"--rounds", "15", "--direct"});
  expect_counts(run, [&](auto& line) { return line["file"].str() == run.truth["data"].str(); });
  EXPECT_EQ(run.truth["read_bytes"].u64(), run.truth["from_disk"].u64());
}

TOOL_TEST(RingIo, FiletopOnlyWhatIsAskedFor) {
  auto reads = trace("filetop", {"--read-only"}, {"--rounds", "5"});
  EXPECT_EQ(reads.report.sum("reads"), reads.truth["reads"].u64());
  EXPECT_EQ(reads.report.sum("writes"), 0u);
  auto others = trace("filetop", {"--comm", "no-such"}, {"--rounds", "5"});
  EXPECT_TRUE(others.report.body.empty());
  EXPECT_GE(others.report.lost("filtered"), others.truth["calls"].u64());
}

// Shown, or counted: where a kernel cannot tell which of them has ended.
TOOL_TEST(RingIo, RequestsWithTheSameUserData) {
  auto seen = observe("filetop --json -p {pid}", "ringio --rounds 20 --same-data");
  auto report = seen.report();
  auto shown = report.sum("reads") + report.sum("writes");
  EXPECT_EQ(shown + report.lost("unmatched"), seen.truth["calls"].u64());
  if (completions_name_requests()) {
    EXPECT_EQ(shown, seen.truth["calls"].u64());
  }
}

TOOL_TEST(RingIo, Vfssize) {
  auto run = trace("vfssize", {}, {"--rounds", "10"});
  std::map<std::string, std::uint64_t> counts, bytes;
  for (auto& line : run.report.body) {
    EXPECT_EQ(line["file"].str(), run.truth["data"].str());
    counts[line["operation"].str()] += line["count"].u64();
    bytes[line["operation"].str()] += line["total_bytes"].u64();
  }
  EXPECT_EQ(counts["R"], run.truth["reads"].u64());
  EXPECT_EQ(counts["W"], run.truth["writes"].u64());
  EXPECT_EQ(bytes["R"], run.truth["read_bytes"].u64());
  EXPECT_EQ(bytes["W"], run.truth["write_bytes"].u64());
}

TOOL_TEST(RingIo, Writesync) {
  auto run = trace("writesync", {}, {"--rounds", "10"});
  ASSERT_EQ(run.report.body.size(), 1u);
  auto& line = run.report.body[0];
  EXPECT_EQ(line["file"].str(), run.truth["data"].str());
  EXPECT_EQ(line["writes"].u64(), run.truth["writes"].u64());
  EXPECT_EQ(line["sync_writes"].u64(), run.truth["syncs"].u64());
  EXPECT_EQ(line["dsync_writes"].u64(), run.truth["dsyncs"].u64());
  EXPECT_EQ(line["write_bytes"].u64(), run.truth["write_bytes"].u64());
}

TOOL_TEST(RingIo, Fsrwstat) {
  auto run = trace("fsrwstat", {}, {"--rounds", "10"});
  expect_counts(run, [](auto& line) { return line["fs_type"].str() == "tmpfs"; });
}

TOOL_TEST(RingIo, Filetype) {
  auto run = trace("filetype", {}, {"--rounds", "10"});
  expect_counts(run, [](auto& line) { return line["type_of_file"].str() == "regular"; });
}

TOOL_TEST(RingIo, Dirtop) {
  auto run = trace("dirtop", {}, {"--rounds", "10"});
  expect_counts(run, [&](auto& line) { return line["directory"].str() == run.truth["dir"].str(); });
}

TOOL_TEST(RingIo, Fileslower) {
  auto run = trace("fileslower", {"0"}, {"--rounds", "10"});
  std::map<std::string, std::uint64_t> counts, bytes;
  std::uint64_t failed = 0;
  for (auto& event : run.report.body) {
    EXPECT_EQ(event["file"].str(), run.truth["data"].str());
    EXPECT_EQ(event["comm"].str(), "ringio");
    EXPECT_EQ(event["pid"].u64(), run.truth["pid"].u64());
    EXPECT_EQ(event["tid"].u64(), run.truth["tid"].u64());
    EXPECT_EQ(event["uid"].u64(), 0u);
    if (event["error"].str() == "EFAULT") {
      failed++;
      continue;
    }
    counts[event["operation"].str()]++;
    bytes[event["operation"].str()] += event["bytes"].u64();
  }
  EXPECT_EQ(failed, run.truth["failed"].u64());
  EXPECT_EQ(counts["R"], run.truth["reads"].u64());
  EXPECT_EQ(counts["W"], run.truth["writes"].u64());
  EXPECT_EQ(bytes["R"], run.truth["read_bytes"].u64());
  EXPECT_EQ(bytes["W"], run.truth["write_bytes"].u64());
}

// From submission on: it waits for another one.
TOOL_TEST(RingIo, FileslowerOnlyWhatIsSlow) {
  auto run = trace("fileslower", {"250"}, {"--rounds", "10", "--delay", "300"});
  ASSERT_EQ(run.report.body.size(), 1u);
  auto& slow = run.report.body[0];
  EXPECT_EQ(slow["file"].str(), run.truth["data"].str());
  EXPECT_EQ(slow["operation"].str(), "R");
  EXPECT_GE(slow["latency_ns"].u64(), 290'000'000u);
  EXPECT_LT(slow["latency_ns"].u64(), 2'000'000'000u);
}

TOOL_TEST(RingIo, Fsdist) {
  auto run = trace("fsdist", {"-t", "tmpfs"}, {"--rounds", "10"});
  std::map<std::string, std::uint64_t> counts;
  for (auto& line : run.report.body) counts[line["operation"].str()] += line["count"].u64();
  EXPECT_EQ(counts["read"], run.truth["reads"].u64() + run.truth["failed"].u64());
  EXPECT_EQ(counts["write"], run.truth["writes"].u64());
  EXPECT_EQ(counts["fsync"], run.truth["flushes"].u64());
  EXPECT_EQ(counts.size(), 3u);
}

// Reads and writes by where in the file they began, which the workload chooses.
TOOL_TEST(RingIo, Fsslower) {
  constexpr std::uint64_t kSize = 4096;
  auto run = trace("fsslower", {"0"}, {"--rounds", "1", "--size", std::to_string(kSize)});
  std::map<std::string, Strings> offsets;
  for (auto& event : run.report.body) {
    EXPECT_EQ(event["file"].str(), run.truth["data"].str());
    EXPECT_EQ(event["fs_type"].str(), "tmpfs");
    EXPECT_EQ(event["tid"].u64(), run.truth["tid"].u64());
    auto& of_operation = offsets[event["operation"].str()];
    if (event["operation"].str() == "F") {
      EXPECT_TRUE(event["offset_bytes"].is_null());
      of_operation.emplace_back();
      continue;
    }
    of_operation.push_back(std::to_string(event["offset_bytes"].u64() / kSize));
  }
  for (auto& [operation, all] : offsets) std::sort(all.begin(), all.end());
  // One write at the file's position, which is 0, and the read after it, behind that; a failure.
  EXPECT_EQ(offsets["W"], (Strings{"0", "0", "1", "2", "3", "4", "6", "7"}));
  EXPECT_EQ(offsets["R"], (Strings{"0", "0", "1", "1", "2", "3", "4", "9"}));
  EXPECT_EQ(offsets["F"].size(), 1u);
}

}  // namespace
}  // namespace coretap::tooltest
