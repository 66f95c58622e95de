// vfssize against a process that reads and writes pieces of a known size.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Vfssize, EachFileAndOperation) {
  auto seen = observe("vfssize --json --strict -p {pid}", "fileio --count 50 --size 3000");
  auto report = seen.report();
  ASSERT_EQ(report.body.size(), 3u);
  const struct {
    const char *operation, *file, *count, *bytes;
  } all[] = {{"R", "data", "reads", "read_bytes"},
             {"W", "data", "writes", "write_bytes"},
             {"W", "copy", "copies", "copy_bytes"}};
  for (auto& [operation, file, count, bytes] : all) {
    SCOPED_TRACE(count);
    auto total = seen.truth[bytes].u64();
    auto line =
        line_with(report.body, {{"operation", operation}, {"file", seen.truth[file].str()}});
    expect_fields(line, {is("comm", "fileio"), is("pid", seen.pid),
                         is("count", seen.truth[count].u64()), is("total_bytes", total)});
    // Whole pieces, or nothing at the end of the file.
    const bool write = operation[0] == 'W';
    auto slots = line["histogram"].items();
    ASSERT_EQ(slots.size(), write ? 1u : 2u);
    expect_fields(slots[0], {{"from_bytes", write ? 2048 : 0}});
    expect_fields(slots.back(),
                  {{"from_bytes", 2048}, {"below_bytes", 4096}, {"count", total / 3000}});
  }
}

TOOL_TEST(Vfssize, OnlyWhatIsAskedFor) {
  auto seen = observe_all({"vfssize --json -p {pid} --write-only", "vfssize --json -p {pid} -a",
                           "vfssize -p {pid} --read-only"},
                          "fileio --count 5");
  auto writes = seen.report().body;
  EXPECT_EQ(writes.size(), 2u);
  for (auto& line : writes) expect_fields(line, {{"operation", "W"}});
  expect_contains(seen.text(1), {"\"file\":\"pipe:["});
  expect_contains(seen.text(2), {"comm = fileio, pid = " + std::to_string(seen.pid) +
                                     ", operation = R, file = " + seen.truth["data"].str() + "\n",
                                 "bytes"});
}

TESTS_OF(vfssize, .events = {{}, "fileio --count 5"}, .nothing_when_idle = true,
         .stress = count_row("fileio --count {n}", 20000, "count", "calls"));

}  // namespace coretap::tooltest
