// Tools of file I/O against a process that reads and writes through io_uring, in each way a known
// number of times.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// Whether all requests of a ring are distinguished here, even those with the same user_data.
bool completions_name_requests() {
  auto explained = run({tool_path("filetop"), "--explain"}).out;
  return !contains(explained, "* tp_btf/io_uring_complete + ");
}

Observed trace(const std::string& tool, const Strings& arguments = "--rounds 10") {
  return observe(Strings(tool) + "--json --strict -p {pid}", Strings("ringio") + arguments);
}

/// For the rows with this value, the sums equal the workload's.
void expect_calls(const Observed& seen, const char* key, const std::string& value) {
  expect_sums(lines_with(seen.body(), {{key, value}}), seen.truth,
              {"reads", "writes", "read_bytes", "write_bytes"});
}

TOOL_TEST(RingIo, Filetop) {
  auto seen = trace("filetop", "--rounds 20 --size 3000");
  expect_calls(seen, "file", seen.truth["data"].str());
  for (auto& line : seen.body()) {
    expect_same(line, seen.truth, {"pid", "tid"});  // not that of a worker
    expect_fields(line, {{"comm", "ringio"}});
  }
}

// Against the kernel's counts of the process, bypassing the page cache.
TOOL_TEST(RingIo, FiletopCountsWhatProcCounts) {
  auto seen = trace("filetop", "--rounds 15 --direct");
  expect_calls(seen, "file", seen.truth["data"].str());
  expect_same(seen.truth, seen.truth, {{"read_bytes", "from_disk"}});
}

TOOL_TEST(RingIo, FiletopOnlyWhatIsAskedFor) {
  auto reads = trace("filetop --read-only", "--rounds 5");
  expect_sums(reads.report(), reads.truth, {"reads"});
  expect_within(reads.report(), {exactly("writes", 0)});
  auto others = trace("filetop --comm no-such", "--rounds 5");
  EXPECT_TRUE(others.body().empty());
  EXPECT_GE(others.report().lost("filtered"), others.number("calls"));
}

// Shown, or counted if a kernel cannot distinguish which of them has ended.
TOOL_TEST(RingIo, RequestsWithTheSameUserData) {
  auto seen = observe("filetop --json -p {pid}", "ringio --rounds 20 --same-data");
  auto report = seen.report();
  auto shown = report.sum("reads") + report.sum("writes");
  EXPECT_EQ(shown + report.lost("unmatched"), seen.number("calls"));
  if (completions_name_requests()) {
    EXPECT_EQ(shown, seen.number("calls"));
  }
}

/// The lines of an operation, "R" or "W", are about the file; their number is that of the calls.
void expect_operations(const Observed& seen, const std::vector<Json>& lines, const char* bytes,
                       const char* count = nullptr) {
  auto data = seen.truth["data"].str();
  for (auto& [operation, calls, size] :
       {std::tuple{"R", "reads", "read_bytes"}, {"W", "writes", "write_bytes"}}) {
    auto own = lines_with(lines, {{"operation", operation}, {"file", data}});
    EXPECT_EQ(count ? sum(own, count) : own.size(), seen.number(calls)) << operation;
    EXPECT_EQ(sum(own, bytes), seen.number(size)) << operation;
  }
  EXPECT_EQ(lines_with(lines, {{"file", data}}).size(), lines.size());
}

TOOL_TEST(RingIo, Vfssize) {
  auto seen = trace("vfssize");
  expect_operations(seen, seen.body(), "total_bytes", "count");
}

TOOL_TEST(RingIo, Writesync) {
  auto seen = trace("writesync");
  expect_same(only(seen.body()), seen.truth,
              {{"file", "data"},
               "writes",
               {"sync_writes", "syncs"},
               {"dsync_writes", "dsyncs"},
               "write_bytes"});
}

TOOL_TEST(RingIo, Fsrwstat) { expect_calls(trace("fsrwstat"), "fs_type", "tmpfs"); }

TOOL_TEST(RingIo, Filetype) { expect_calls(trace("filetype"), "type_of_file", "regular"); }

TOOL_TEST(RingIo, Dirtop) {
  auto seen = trace("dirtop");
  expect_calls(seen, "directory", seen.truth["dir"].str());
}

TOOL_TEST(RingIo, Fileslower) {
  auto seen = trace("fileslower 0");
  auto events = seen.body(), failed = lines_with(events, {{"error", "EFAULT"}});
  for (auto& event : events) {
    expect_same(event, seen.truth, {{"file", "data"}, "pid", "tid"});
    expect_fields(event, {{"comm", "ringio"}, {"uid", 0}});
  }
  EXPECT_EQ(failed.size(), seen.number("failed"));
  std::erase_if(events, [](auto& event) { return event["error"].str() == "EFAULT"; });
  expect_operations(seen, events, "bytes");
}

// From its submission: it waits for another one.
TOOL_TEST(RingIo, FileslowerOnlyWhatIsSlow) {
  auto seen = trace("fileslower 250", "--rounds 10 --delay 300");
  auto slow = only(seen.body());
  expect_fields(slow, {is("file", seen.truth["data"].str()), is("operation", "R")});
  expect_within(std::vector<Json>{slow}, {between("latency_ns", 290'000'000, 1'999'999'999)});
}

TOOL_TEST(RingIo, Fsdist) {
  auto seen = trace("fsdist -t tmpfs");
  EXPECT_EQ(counts_by(seen.report(), "operation"),
            (Counts{{"read", seen.number("reads") + seen.number("failed")},
                    {"write", seen.number("writes")},
                    {"fsync", seen.number("flushes")}}));
}

// Reads and writes by file offset, which the workload chooses.
TOOL_TEST(RingIo, Fsslower) {
  auto seen = trace("fsslower 0", "--rounds 1 --size 4096");
  std::map<std::string, std::multiset<std::uint64_t>> offsets;
  for (auto& event : seen.body()) {
    expect_same(event, seen.truth, {{"file", "data"}, "tid"});
    expect_fields(event, {{"fs_type", "tmpfs"}});
    auto operation = event["operation"].str();
    EXPECT_EQ(event["offset_bytes"].is_null(), operation == "F");
    offsets[operation].insert(operation == "F" ? 0 : event["offset_bytes"].u64() / 4096);
  }
  // One write at the file's position, which is 0, and the read after it, after that; a failure.
  EXPECT_EQ(offsets["W"], (std::multiset<std::uint64_t>{0, 0, 1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(offsets["R"], (std::multiset<std::uint64_t>{0, 0, 1, 1, 2, 3, 4, 9}));
  EXPECT_EQ(offsets["F"].size(), 1u);
}

}  // namespace
}  // namespace coretap::tooltest
