// filetop against a process that makes a known number of reads and writes.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Filetop, CountsCallsAndBytesOfEveryWay) {
  auto seen = observe_all(
      {"filetop --json --strict -p {pid}", "filetop --json --strict -p {pid} --by comm,file_type"},
      "fileio --count 50 --size 3000");
  auto rows = seen.report().body;
  auto copies = lines_with(rows, {{"file", seen.truth["copy"].str()}});
  expect_sums(lines_with(rows, {{"file", seen.truth["data"].str()}}), seen.truth,
              {"reads", "writes", "read_bytes", "write_bytes"});
  expect_sums(copies, seen.truth, {{"writes", "copies"}, {"write_bytes", "copy_bytes"}});
  EXPECT_EQ(sum(copies, "reads"), 0u);
  for (auto& line : rows)
    expect_fields(line, {{"pid", seen.pid}, {"comm", "fileio"}, {"file_type", "R"}});
  // All files of a process are one row, with the same sums; other keys are not shown.
  auto row = only(seen.body(1));
  expect_fields(row, {{"comm", "fileio"}, {"file_type", "R"}});
  EXPECT_FALSE(row.has("pid") || row.has("file"));
  EXPECT_GT(rows.size(), 1u);
  expect_sums(rows, row, {"reads", "writes", "read_bytes", "write_bytes"});
}

TOOL_TEST(Filetop, OnlyWhatIsAskedFor) {
  auto seen = observe_all({"filetop --json -p {pid} --read-only",
                           "filetop --json -p {pid} -d /proc", "filetop --json -p {pid} -d {dir}",
                           "filetop --json -p {pid} -a", "filetop -p {pid} -s wbytes 10"},
                          "fileio --count 5");
  auto reads = seen.report(0), none = seen.report(1), below = seen.report(2);
  EXPECT_EQ(reads.sum("writes"), 0u);
  expect_sums(reads, seen.truth, {"reads"});
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), seen.truth["calls"].u64());
  EXPECT_EQ(below.sum("reads") + below.sum("writes"), seen.truth["calls"].u64());
  // The workload's pipe.
  expect_contains(seen.text(3), {"\"file\":\"pipe:["});
  EXPECT_GT(seen.report(3).body.size(), below.body.size());
  expect_contains(seen.text(4),
                  {" loadavg: ", "TID     COMM              READS WRITES    R_Kb    W_Kb T FILE\n",
                   "R " + seen.truth["data"].str() + "\n"});
}

const DeclareTests kFiletop{of_reads_and_writes("filetop")};

}  // namespace coretap::tooltest
