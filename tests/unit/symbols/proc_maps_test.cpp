#include "symbols/proc_maps.hpp"

#include <gtest/gtest.h>

#include "test_files.hpp"

namespace coretap::symbols {
namespace {

using test::open_file;
using test::sample;

TEST(ProcMaps, KeepsExecutableMappings) {
  const auto content = read_mappings(open_file(sample("maps.txt")).get());
  EXPECT_EQ(content.lines, 12u);
  EXPECT_EQ(content.damaged, 0u);
  ASSERT_EQ(content.executable.size(), 10u);
  const Mapping& code = content.executable[0];
  EXPECT_EQ(code.start, 0x55d000001000u);
  EXPECT_EQ(code.end, 0x55d000005000u);
  EXPECT_EQ(code.offset, 0x1000u);
  EXPECT_EQ(code.device_major, 0xfeu);
  EXPECT_EQ(code.inode, 100u);
  EXPECT_EQ(code.path, "/usr/bin/demo");
  EXPECT_TRUE(code.has_file());
  EXPECT_FALSE(code.deleted);
}

TEST(ProcMaps, TellsKindsApart) {
  const auto maps = read_mappings(open_file(sample("maps.txt")).get()).executable;
  ASSERT_EQ(maps.size(), 10u);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_FALSE(maps[1].has_file());
  EXPECT_EQ(maps[2].path, "/tmp/evil\nname with  spaces");
  EXPECT_TRUE(maps[2].has_file());
  EXPECT_EQ(maps[3].path, "/usr/lib/gone.so");
  EXPECT_TRUE(maps[3].deleted);
  EXPECT_EQ(maps[4].path, "/memfd:doublemapper");
  EXPECT_TRUE(maps[4].has_file());
  for (const std::size_t i : {5, 6, 7, 8, 9}) EXPECT_FALSE(maps[i].has_file()) << maps[i].path;
  EXPECT_EQ(maps[8].path, "[vdso]");
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

TEST(ProcMaps, EveryPrefixOfALineIsSafe) {
  const std::string line =
      "7f0000003000-7f0000004000 r-xp 00002000 fe:00 101   /usr/lib/gone.so (deleted)";
  for (std::size_t length = 0; length < line.size(); ++length)
    (void)parse_mapping(std::string(line, 0, length));
  EXPECT_TRUE(parse_mapping(line));
}

TEST(LineReader, CutsLongLinesAndGoesOn) {
  test::ScratchDirectory scratch;
  const std::string path = scratch.write(
      "lines", "one\n" + std::string(300000, 'x') + "\n\ntwo\n" + std::string(50, 'y') + "\nend");
  const Fd fd = open_file(path);
  LineReader lines(fd.get(), 40, UINT64_MAX);
  std::string_view line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "one");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, std::string(40, 'x'));
  EXPECT_TRUE(lines.truncated());
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "");
  EXPECT_FALSE(lines.truncated());
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "two");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, std::string(40, 'y'));
  EXPECT_TRUE(lines.truncated());
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "end");
  EXPECT_FALSE(lines.terminated());
  EXPECT_FALSE(lines.next(line));
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
