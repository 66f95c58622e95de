#include "symbols/perf_map.hpp"

#include "expect.hpp"
#include "test_files.hpp"

namespace coretap::symbols {
namespace {

using namespace test;

std::string name_at(const PerfMap& map, std::uint64_t address) {
  const auto hit = map.find(address);
  return hit.name != nullptr ? hit.name : "";
}

std::vector<std::string> names_at(const PerfMap& map,
                                  std::initializer_list<std::uint64_t> addresses) {
  std::vector<std::string> all;
  for (auto address : addresses) all.push_back(name_at(map, address));
  return all;
}
using Names = std::vector<std::string>;

TEST(PerfMap, LaterEntriesOverrideEarlierOnes) {
  const PerfMap map = PerfMap::read(open_file(sample("perf_map.txt")).get());
  EXPECT_EQ(names_at(map, {0x7f0000000000, 0x7f000000007f, 0x7f0000000080, 0x7f000000017f}),
            (Names{"Interpreter", "Interpreter", "over_both", "over_both"}));
  EXPECT_EQ(names_at(map, {0x7f0000000200, 0x7f0000000240, 0x7f0000000260, 0x7f0000000300}),
            (Names{"void Foo::bar(int, long)", "inner", "void Foo::bar(int, long)", "newest"}));
  EXPECT_EQ(names_at(map, {0x7f0000000180, 0x7f0000000310, 0, UINT64_MAX}), Names(4));
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
  EXPECT_EQ(names_at(map, {0x1000, 0x2000, 0x4000}), (Names{"", "good", "after_long"}));
  EXPECT_EQ(name_at(map, 0x3000).size(), 4096u - std::string("3000 10 ").size());
  EXPECT_EQ(name_at(map, 0x5000), "");  // its writer is not done
  EXPECT_EQ(map.segments(), 3u);
  EXPECT_EQ(map.damaged(), 11u);
}

// Against the obvious method: paint every address, the last entry wins.
TEST(PerfMap, AgreesWithPainting) {
  ScratchDirectory scratch;
  unsigned state = 1;
  const auto random = [&](unsigned below) {
    return (state = state * 1103515245 + 12345) / 65536 % below;
  };
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> expected(400);
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const unsigned start = random(300), size = 1 + random(i % 2 ? 100 : 5);
      const std::string name = "f" + std::to_string(i);
      char line[64];
      ::snprintf(line, sizeof line, "%x %x %s\n", start + 0x1000, size, name.c_str());
      text += line;
      for (unsigned at = start; at < start + size; ++at) expected[at] = name;
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
  std::filesystem::create_directories(scratch.path() + "/root");
  ASSERT_EQ(
      ::symlink((scratch.path() + "/outside").c_str(), (scratch.path() + "/root/tmp").c_str()), 0);
  const Fd root = open_handle(scratch.path() + "/root", true);
  EXPECT_FALSE(open_handle_in(root.get(), "/tmp", true));
}

}  // namespace
}  // namespace coretap::symbols
