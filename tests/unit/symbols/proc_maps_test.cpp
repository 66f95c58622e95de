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
