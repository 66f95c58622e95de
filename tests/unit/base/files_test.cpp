#include "base/files.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "expect.hpp"

namespace coretap {
namespace {

class Files : public testing::Test {
 protected:
  Files() {
    auto name = (std::filesystem::temp_directory_path() / "coretap-files-XXXXXX").string();
    if (!mkdtemp(name.data())) abort();
    directory_ = name;
  }
  ~Files() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::string file(std::string_view text) {
    auto path = directory_ + "/file";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string directory_;
};

using namespace std::string_view_literals;

TEST_F(Files, ReadWhole) {
  EXPECT_EQ(read_file(file("")), "");
  EXPECT_EQ(read_file(file("text\n")), "text\n");
  EXPECT_EQ(read_file(file("a\0b"sv)), std::string("a\0b", 3));
  std::string large(300000, 'x');
  EXPECT_EQ(read_file(file(large)), large);
}

TEST_F(Files, ReadsNoMoreThanTheLimit) {
  auto path = file(std::string(10000, 'x'));
  for (std::size_t limit : {0u, 1u, 4095u, 4096u, 4097u, 9999u, 10000u})
    EXPECT_EQ(read_file(path, limit)->size(), limit);
  EXPECT_EQ(read_file(path, 10001)->size(), 10000u);
  EXPECT_EQ(read_file("/dev/zero", 5000)->size(), 5000u) << "files without an end";
}

TEST_F(Files, WhatCannotBeRead) {
  EXPECT_FALSE(read_file(directory_ + "/none"));
  EXPECT_FALSE(read_file(directory_)) << "a directory";
  EXPECT_FALSE(read_file(""));
}

TEST_F(Files, Numbers) {
  EXPECT_EQ(read_number(file("32768\n")), 32768);
  EXPECT_EQ(read_number(file("-1\n")), -1);
  EXPECT_EQ(read_number(file("0")), 0);
  EXPECT_EQ(read_number(file("7 8 9\n")), 7);
  for (auto bad : {""sv, "\n"sv, "max\n"sv, "-"sv, "\0001"sv})
    EXPECT_FALSE(read_number(file(bad))) << bad;
  EXPECT_FALSE(read_number(directory_ + "/none"));
  EXPECT_GT(read_number("/proc/sys/kernel/pid_max"), 300);
}

TEST_F(Files, Keyed) {
  auto path = file("MemTotal:       16 kB\nMemFree:         7 kB\nSwapFree:\nMem: 3\nLast:9");
  EXPECT_EQ(read_keyed(path, "MemTotal"), 16);
  EXPECT_EQ(read_keyed(path, "MemFree"), 7);
  EXPECT_EQ(read_keyed(path, "Mem"), 3) << "not the first key that begins so";
  EXPECT_EQ(read_keyed(path, "Last"), 9) << "without an end of line";
  EXPECT_FALSE(read_keyed(path, "Free"));
  EXPECT_FALSE(read_keyed(path, "memfree"));
  EXPECT_FALSE(read_keyed(path, "SwapFree")) << "a key without a number has no value";
  EXPECT_FALSE(read_keyed(file(""), "MemFree"));
  EXPECT_FALSE(read_keyed(file("\n\n:\n"), "MemFree"));
  EXPECT_FALSE(read_keyed(directory_ + "/none", "MemFree"));
}

TEST_F(Files, MemoryOfThisMachine) {
  auto total = memory_kb("MemTotal");
  EXPECT_GT(total, 1024u);
  EXPECT_LT(memory_kb("MemFree"), total);
  EXPECT_EQ(memory_kb("NoSuchLine"), 0u);
}

}  // namespace
}  // namespace coretap
