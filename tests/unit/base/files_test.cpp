#include "coretap/small_files.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

class Files : public testing::Test {
 protected:
  std::string file(std::string_view text) { return directory_.write("file", text); }

  ScratchDirectory directory_;
  const std::string none_ = directory_.in("none");
};

TEST_F(Files, ReadWhole) {
  for (auto text : {""sv, "text\n"sv, "a\0b"sv}) EXPECT_EQ(read_file(file(text)), text);
  std::string large(300000, 'x');
  EXPECT_EQ(read_file(file(large)), large);
  EXPECT_FALSE(read_file(none_));
  EXPECT_FALSE(read_file(directory_.path())) << "a directory";
  EXPECT_FALSE(read_file(""));
}

TEST_F(Files, ReadsNoMoreThanTheLimit) {
  auto path = file(std::string(10000, 'x'));
  for (std::size_t limit : {0u, 1u, 4095u, 4096u, 4097u, 9999u, 10000u})
    EXPECT_EQ(read_file(path, limit)->size(), limit);
  EXPECT_EQ(read_file(path, 10001)->size(), 10000u);
  EXPECT_EQ(read_file("/dev/zero", 5000)->size(), 5000u) << "files without an end";
}

TEST_F(Files, Numbers) {
  for (auto& [text, number] : std::map<std::string_view, long long>{
           {"32768\n", 32768}, {"-1\n", -1}, {"0", 0}, {"7 8 9\n", 7}})
    EXPECT_EQ(read_number(file(text)), number);
  for (auto bad : {""sv, "\n"sv, "max\n"sv, "-"sv, "\0001"sv})
    EXPECT_FALSE(read_number(file(bad))) << bad;
  EXPECT_FALSE(read_number(none_));
  EXPECT_GT(read_number("/proc/sys/kernel/pid_max"), 300);
}

TEST_F(Files, Keyed) {
  auto path = file("MemTotal:       16 kB\nMemFree:         7 kB\nSwapFree:\nMem: 3\nLast:9");
  EXPECT_EQ(read_keyed(path, "MemTotal"), 16);
  EXPECT_EQ(read_keyed(path, "MemFree"), 7);
  EXPECT_EQ(read_keyed(path, "Mem"), 3) << "not the first key that begins so";
  EXPECT_EQ(read_keyed(path, "Last"), 9) << "without an end of line";
  for (auto* none : {"Free", "memfree", "SwapFree"}) EXPECT_FALSE(read_keyed(path, none)) << none;
  for (auto* text : {"", "\n\n:\n"}) EXPECT_FALSE(read_keyed(file(text), "MemFree"));
  EXPECT_FALSE(read_keyed(none_, "MemFree"));
}

TEST_F(Files, MemoryOfThisMachine) {
  auto total = memory_kb("MemTotal");
  EXPECT_GT(total, 1024u);
  EXPECT_LT(memory_kb("MemFree"), total);
  EXPECT_EQ(memory_kb("NoSuchLine"), 0u);
}

}  // namespace
}  // namespace coretap
