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

// An inode number is used again; files of an overlay have no generation.
TOOL_TEST(Filetop, FilesOfOverlaysThatTakeAnInodeNumberAgain) {
  require_tool("filetop");
  require_types_of_modules();
  TemporaryDirectory directory;
  auto report = trace_mounts(
      {"filetop", "-C"},
      on_own_disk(directory.path(), "mkfs.ext4 -qF",
                  kOverlay + std::string("for i in 1 2 3 4; do printf 12345 > all/f$i; rm all/f$i; "
                                         "done")));
  for (auto* name : {"f1", "f2", "f3", "f4"}) {
    SCOPED_TRACE(name);
    auto rows = lines_with(report.body, {{"file", directory.path() + "/disk/all/" + name}});
    ASSERT_EQ(rows.size(), 1u);
    expect_fields(rows[0], {{"writes", 1u}, {"write_bytes", 5u}});
  }
}

// Each subvolume of btrfs has its own inode numbers, and is a separate device for stat().
TOOL_TEST(Filetop, FilesOfSubvolumesWithOneInodeNumber) {
  require_tool("filetop");
  require_types_of_modules();
  TemporaryDirectory directory;
  const auto devices = directory.path() + "/devices";
  auto report = trace_mounts(
      {"filetop", "-C"},
      on_own_disk(directory.path(), "mkfs.btrfs -q",
                  "for i in a b; do btrfs subvolume create $i >/dev/null || exit 9; done; "
                  "printf 1 > a/one; for i in 1 2 3; do printf 12 >> b/other; done; "
                  "stat -c %Hd:%Ld a/one b/other > " +
                      devices));
  const auto truth = lines(slurp(devices));
  ASSERT_EQ(truth.size(), 2u);
  auto of = [&](const char* name) {
    return only(lines_with(report.body, {{"file", directory.path() + "/disk/" + name}}));
  };
  expect_fields(of("a/one"), {{"writes", 1u}, {"write_bytes", 1u}, {"device", truth[0]}});
  expect_fields(of("b/other"), {{"writes", 3u}, {"write_bytes", 6u}, {"device", truth[1]}});
}

const DeclareTests kFiletop{of_reads_and_writes("filetop")};

}  // namespace coretap::tooltest
