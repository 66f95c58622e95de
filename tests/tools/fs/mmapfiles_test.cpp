// mmapfiles against a program that maps a file a known number of times, and /proc/PID/maps.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Mmapfiles, EachFileAsOftenAsItIsMapped) {
  auto seen =
      observe_all({"mmapfiles --json --strict -P -p {pid}", "mmapfiles --json --strict -u 54321"},
                  "segments --maps 20");
  auto rounds = seen.truth["rounds"].u64(), page = seen.truth["page"].u64();
  auto report = seen.report(0), none = seen.report(1);
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), 4 * rounds);

  // In each round: an executable page, two shared writable pages, one that replaces them; and a
  // directory, which cannot be mapped.
  for (auto& row : report.body) expect_fields(row, {{"pid", seen.pid}, {"comm", "segments"}});
  for (bool file : {true, false})
    expect_fields(line_with(report.body, {{"file", file ? seen.truth["path"].str() : "/"}}),
                  {is("maps", (file ? 3 : 1) * rounds), is("executable_maps", file ? rounds : 0),
                   is("writing_maps", file ? rounds : 0),
                   is("mapped_bytes", (file ? 4 : 1) * rounds * page)});
  expect_sums(report, seen.truth, {{"maps", "file_maps"}});
}

// All files that a running program has mapped; the kernel maps the program and its loader.
TOOL_TEST(Mmapfiles, FilesOfACommand) {
  auto [report, mapped, shown] = maps_of_command("mmapfiles");
  EXPECT_FALSE(mapped.empty());
  for (auto& path : shown) mapped.erase(path);
  const bool calls = !report.header["limits"].items().empty();
  EXPECT_LE(mapped.size(), calls ? 2u : 0u) << ::testing::PrintToString(mapped);
}

TESTS_OF(mmapfiles, .events = {"-P", "segments --maps 20"},
         .stress = count_row("segments --maps {n}", 20000, "maps", "file_maps"),
         .long_run = {{.arguments = "-P 10"}});

}  // namespace coretap::tooltest
