// Maps of processes, and of code generated at run time.
#include "expect.hpp"
#include "symbols/perf_map.hpp"
#include "symbols/proc_maps.hpp"
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
  Words all;
  for (auto& m : content.executable) all.push_back(text(m));
  EXPECT_EQ(all, (Words{
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
                                    // All of the code, except parts next to 2 MB pages.
                                    "100000-101000 r--p 00000000 fe:00 5 /a\n"
                                    "101000-103000 rwxp 00000000 00:00 0\n"
                                    "103000-104000 r--p 00003000 fe:00 5 /a\n"
                                    "200000-201000 r-xp 00001000 fe:00 6 /b\n"
                                    "201000-202000 r-xp 00000000 00:00 0\n"
                                    "202000-203000 rwxp 00000000 00:01 3 /anon_hugepage (deleted)\n"
                                    "203000-204000 rw-p 00003000 fe:00 6 /b\n"
                                    // Unknown: the neighbours' offsets differ; another file's.
                                    "301000-302000 r--p 00000000 fe:00 7 /c\n"
                                    "302000-303000 rwxp 00000000 00:00 0\n"
                                    "303000-304000 r--p 00001000 fe:00 7 /c\n"
                                    "304000-305000 rwxp 00000000 00:00 0\n"
                                    "305000-306000 r-xp 00004000 fe:00 8 /d\n");
  Words all;
  for (auto& m : read_mappings(open_file(maps).get()).executable)
    all.push_back(text(m) + fmt::format(" by {:x}-{:x}", m.file_start, m.file_end));
  EXPECT_EQ(all, (Words{
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
  EXPECT_EQ(content.executable[3].start, 0xd000u);  // the last line has no newline
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

using namespace test;

std::string name_at(const PerfMap& map, std::uint64_t address) {
  const auto hit = map.find(address);
  return hit.name != nullptr ? hit.name : "";
}

Words names_at(const PerfMap& map, std::initializer_list<std::uint64_t> addresses) {
  Words all;
  for (auto address : addresses) all.push_back(name_at(map, address));
  return all;
}

TEST(PerfMap, LaterEntriesOverrideEarlierOnes) {
  const PerfMap map = PerfMap::read(open_file(sample("perf_map.txt")).get());
  EXPECT_EQ(names_at(map, {0x7f0000000000, 0x7f000000007f, 0x7f0000000080, 0x7f000000017f}),
            (Words{"Interpreter", "Interpreter", "over_both", "over_both"}));
  EXPECT_EQ(names_at(map, {0x7f0000000200, 0x7f0000000240, 0x7f0000000260, 0x7f0000000300}),
            (Words{"void Foo::bar(int, long)", "inner", "void Foo::bar(int, long)", "newest"}));
  EXPECT_EQ(names_at(map, {0x7f0000000180, 0x7f0000000310, 0, UINT64_MAX}), Words(4));
  EXPECT_EQ(map.find(0x7f0000000260).start, 0x7f0000000200u);
  EXPECT_EQ(map.segments(), 6u);
}

TEST(PerfMap, AMillionEntriesOfOnePlace) {
  std::string text;
  for (int i = 0; i < 1'000'000; i++) text += fmt::format("1000 10 m{}\n", i);
  ScratchDirectory scratch;
  const PerfMap map = PerfMap::read(open_file(scratch.write("map", text)).get());
  EXPECT_EQ(name_at(map, 0x1000), "m999999");
}

TEST(PerfMap, SurvivesDamage) {
  const PerfMap map = PerfMap::read(open_file(sample("perf_map_damaged.txt")).get());
  EXPECT_EQ(names_at(map, {0x1000, 0x2000, 0x4000}), (Words{"", "good", "after_long"}));
  EXPECT_EQ(name_at(map, 0x3000).size(), 4096u - std::string("3000 10 ").size());
  EXPECT_EQ(name_at(map, 0x5000), "");  // not yet completely written
  EXPECT_EQ(map.segments(), 3u);
  EXPECT_EQ(map.damaged(), 11u);
}

// Against the simple method: mark every address, the last entry wins.
TEST(PerfMap, AgreesWithPainting) {
  ScratchDirectory scratch;
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> expected(400);
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const auto start = random() % 300, size = 1 + random() % (i % 2 ? 100 : 5);
      const std::string name = "f" + std::to_string(i);
      text += fmt::format("{:x} {:x} {}\n", start + 0x1000, size, name);
      for (auto at = start; at < start + size; ++at) expected[at] = name;
    }
    const PerfMap map = PerfMap::read(open_file(scratch.write("map", text)).get());
    for (std::size_t at = 0; at < expected.size(); ++at)
      ASSERT_EQ(name_at(map, 0x1000 + at), expected[at]) << at;
  }
}

TEST(OpenPerfMap, TrustsOnlyRegularFilesOfTheOwner) {
  ScratchDirectory scratch;
  const std::string file = scratch.write("tmp/perf-7.map", "1000 10 name\n");
  const Fd tmp = open_handle(scratch.path() + "/tmp", true);
  const uid_t me = ::geteuid();
  EXPECT_TRUE(open_perf_map(tmp.get(), 7, me));
  EXPECT_FALSE(open_perf_map(tmp.get(), 8, me));
  EXPECT_FALSE(open_perf_map(-1, 7, me));
  if (me == 0) {
    EXPECT_TRUE(open_perf_map(tmp.get(), 7, 1000)) << "root may write any user's";
    ASSERT_EQ(::chown(file.c_str(), 4242, 4242), 0);
    EXPECT_TRUE(open_perf_map(tmp.get(), 7, 4242));
    EXPECT_FALSE(open_perf_map(tmp.get(), 7, 0)) << "foreign";
  } else {
    EXPECT_FALSE(open_perf_map(tmp.get(), 7, me + 1)) << "foreign";
  }
}

TEST(OpenPerfMap, RefusesLinksFifosDirectoriesAndLargeFiles) {
  ScratchDirectory scratch;
  scratch.write("tmp/real", "1000 10 name\n");
  const std::string directory = scratch.path() + "/tmp/";
  ASSERT_EQ(::symlink("real", (directory + "perf-1.map").c_str()), 0);
  ASSERT_EQ(::mkfifo((directory + "perf-2.map").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((directory + "perf-3.map").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("/dev/zero", (directory + "perf-4.map").c_str()), 0);
  std::filesystem::resize_file(scratch.write("tmp/perf-5.map", "1000 10 name\n"), 300 << 20);
  const Fd tmp = open_handle(directory, true);
  for (const pid_t pid : {1, 2, 3, 4, 5})
    EXPECT_FALSE(open_perf_map(tmp.get(), pid, ::geteuid())) << pid;
}

TEST(OpenPerfMap, DirectoriesStayInsideTheRoot) {
  ScratchDirectory scratch;
  scratch.write("outside/perf-1.map", "1000 10 name\n");
  fs::create_directories(scratch.in("root"));
  fs::create_symlink(scratch.in("outside"), scratch.in("root/tmp"));
  const Fd root = open_handle(scratch.path() + "/root", true);
  EXPECT_FALSE(open_handle_in(root.get(), "/tmp", true));
}

}  // namespace
}  // namespace coretap::symbols
