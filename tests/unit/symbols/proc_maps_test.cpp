#include "symbols/proc_maps.hpp"

#include "expect.hpp"
#include "test_files.hpp"

namespace coretap::symbols {
namespace {

using namespace test;

std::string text(const Mapping& m) {
  return fmt::format("{:x}-{:x} {:x} {:x}:{:x} {} {}{}{}", m.start, m.end, m.offset, m.device_major,
                     m.device_minor, m.inode, m.path, m.deleted ? " deleted" : "",
                     m.has_file() ? " file" : "");
}

TEST(ProcMaps, KeepsExecutableMappingsAndTellsTheirKinds) {
  const auto content = read_mappings(open_file(sample("maps.txt")).get());
  EXPECT_EQ(content.lines, 12u);
  EXPECT_EQ(content.damaged, 0u);
  std::vector<std::string> all;
  for (auto& m : content.executable) all.push_back(text(m));
  EXPECT_EQ(all, (std::vector<std::string>{
                     "55d000001000-55d000005000 1000 fe:0 100 /usr/bin/demo file",
                     "7f0000000000-7f0000001000 0 0:0 0 ",
                     "7f0000002000-7f0000003000 0 0:2f 7 /tmp/evil\nname with  spaces file",
                     "7f0000003000-7f0000004000 2000 fe:0 101 /usr/lib/gone.so deleted file",
                     "7f0000004000-7f0000005000 0 0:1 2049 /memfd:doublemapper deleted file",
                     "7f0000005000-7f0000006000 0 0:1 12 /dev/zero deleted",
                     "7f0000006000-7f0000007000 0 0:0 0 [anon:jit]",
                     "7f0000007000-7f0000008000 0 0:0 0 //anon",
                     "7ffff7fc1000-7ffff7fc3000 0 0:0 0 [vdso]",
                     "ffffffffff600000-ffffffffff601000 0 0:0 0 [vsyscall]",
                 }));
}

TEST(ProcMaps, CopiesOfCodeAreTheFiles) {
  ScratchDirectory directory;
  const auto maps = directory.write("maps",
                                    // All of it; but for what is beside pages of 2 MB.
                                    "100000-101000 r--p 00000000 fe:00 5 /a\n"
                                    "101000-103000 rwxp 00000000 00:00 0\n"
                                    "103000-104000 r--p 00003000 fe:00 5 /a\n"
                                    "200000-201000 r-xp 00001000 fe:00 6 /b\n"
                                    "201000-202000 r-xp 00000000 00:00 0\n"
                                    "202000-203000 rwxp 00000000 00:01 3 /anon_hugepage (deleted)\n"
                                    "203000-204000 rw-p 00003000 fe:00 6 /b\n"
                                    // Not known: its place differs by the two; another file's.
                                    "301000-302000 r--p 00000000 fe:00 7 /c\n"
                                    "302000-303000 rwxp 00000000 00:00 0\n"
                                    "303000-304000 r--p 00001000 fe:00 7 /c\n"
                                    "304000-305000 rwxp 00000000 00:00 0\n"
                                    "305000-306000 r-xp 00004000 fe:00 8 /d\n");
  std::vector<std::string> all;
  for (auto& m : read_mappings(open_file(maps).get()).executable)
    all.push_back(text(m) + fmt::format(" by {:x}-{:x}", m.file_start, m.file_end));
  EXPECT_EQ(all, (std::vector<std::string>{
                     "101000-103000 1000 fe:0 5 /a file by 100000-101000",
                     "200000-201000 1000 fe:0 6 /b file by 200000-201000",
                     "201000-202000 2000 fe:0 6 /b file by 200000-201000",
                     "202000-203000 3000 fe:0 6 /b file by 200000-201000",
                     "302000-303000 0 0:0 0  by 302000-303000",
                     "304000-305000 0 0:0 0  by 304000-305000",
                     "305000-306000 4000 fe:0 8 /d file by 305000-306000",
                 }));
}

TEST(ProcMaps, SurvivesDamage) {
  const auto content = read_mappings(open_file(sample("maps_damaged.txt")).get());
  ASSERT_EQ(content.executable.size(), 4u);
  EXPECT_EQ(content.executable[0].path, "/good");
  EXPECT_EQ(content.executable[1].path, "/later");
  EXPECT_TRUE(content.executable[2].path_cut);
  EXPECT_EQ(content.executable[3].start, 0xd000u);  // the last line lacks its newline
  EXPECT_EQ(content.damaged, 12u);
}

TEST(ProcMaps, NothingFromNothing) {
  EXPECT_TRUE(read_mappings(-1).executable.empty());
  EXPECT_TRUE(read_mappings(open_file("/dev/null").get()).executable.empty());
}

TEST(LineReader, CutsLongLinesAndGoesOn) {
  ScratchDirectory scratch;
  const std::string path = scratch.write(
      "lines", "one\n" + std::string(300000, 'x') + "\n\ntwo\n" + std::string(50, 'y') + "\nend");
  const Fd fd = open_file(path);
  LineReader lines(fd.get(), 40, UINT64_MAX);
  std::string all;
  for (std::string_view line; lines.next(line);)
    all += std::string(line) + (lines.truncated() ? "..." : "") + "|";
  EXPECT_EQ(all, "one|" + std::string(40, 'x') + "...||two|" + std::string(40, 'y') + "...|end|");
  EXPECT_FALSE(lines.terminated());
}

TEST(LineReader, StopsAtItsBound) {
  const Fd zeros = open_file("/dev/zero");
  LineReader lines(zeros.get(), 100, 1 << 20);
  std::string_view line;
  EXPECT_TRUE(lines.next(line));
  EXPECT_FALSE(lines.next(line));
}

}  // namespace
}  // namespace coretap::symbols
