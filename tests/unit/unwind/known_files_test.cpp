#include "unwind/known_files.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "unwind/kernel_tables.hpp"

namespace coretap::unwind {
namespace {

std::shared_ptr<File> file_with(std::vector<ElfCode::Segment> segments) {
  auto file = std::make_shared<File>();
  file->elf.state = ElfCode::usable;
  file->elf.segments = std::move(segments);
  file->state = File::ready;
  file->page = 7;
  file->pages = 2;
  file->base = 0x10000;
  return file;
}

TEST(FileEntry, ExecutableSegmentsAsTheyAreMapped) {
  auto entry = file_entry(*file_with({{0, 0, 0x800, false},
                                      {0x1234, 0x401234, 0x2000, true},
                                      {0x6000, 0x506000, 0x1000, true}}),
                          300);
  EXPECT_EQ(entry.file, 300u);
  EXPECT_EQ(entry.page, 7u);
  EXPECT_EQ(entry.pages, 2u);
  EXPECT_EQ(entry.extents[0].first, 1u);
  EXPECT_EQ(entry.extents[0].length, 3u);
  EXPECT_EQ(entry.extents[0].bias, 0x401000u - 0x10000);
  EXPECT_EQ(entry.extents[1].first, 6u);
  EXPECT_EQ(entry.extents[1].length, 1u);
  EXPECT_EQ(entry.extents[2].length, 0u);
}

TEST(FileEntry, WhyThereIsNoTable) {
  auto file = file_with({{0x1000, 0x1000, 0x1000, true}});
  file->state = File::no_memory;
  EXPECT_EQ(file_entry(*file, 0).page, UNWIND_LACK_MEMORY);
  EXPECT_EQ(file_entry(*file, 0).pages, 0u);
  file->state = File::no_cfi;
  EXPECT_EQ(file_entry(*file, 0).page, UNWIND_LACK_CFI);
  EXPECT_EQ(file_entry(*file, 0).extents[0].length, 1u) << "it is known nevertheless";
}

/// The kernel is asked, and its map read.
class KnownFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto why = kernel_.open(1, true); !why.empty()) GTEST_SKIP() << why;
    known_ = std::make_unique<KnownFiles>(KnownFiles::Maps{
        kernel_.fd("unwind_files"), kernel_.program(), kernel_.fd("unwind_answer")});
  }
  static Fd memory_file(std::size_t bytes) {
    Fd fd(::memfd_create("known", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    return fd;
  }
  std::vector<unwind_file_key> keys() const {
    std::vector<unwind_file_key> all;
    unwind_file_key key{};
    for (int bad = bpf_map_get_next_key(kernel_.fd("unwind_files"), nullptr, &key); !bad;
         bad = bpf_map_get_next_key(kernel_.fd("unwind_files"), &key, &key))
      all.push_back(key);
    return all;
  }
  unwind_file entry(const unwind_file_key& key) const {
    unwind_file found{};
    EXPECT_EQ(bpf_map_lookup_elem(kernel_.fd("unwind_files"), &key, &found), 0);
    return found;
  }

  test::KernelTables kernel_;
  std::unique_ptr<KnownFiles> known_;
  std::shared_ptr<File> file_ = file_with({{0x1000, 0x1000, 0x1000, true}});
};

TEST_F(KnownFilesTest, WhoTheyAreAsStatTells) {
  auto fd = memory_file(5000);
  ASSERT_TRUE(known_->tell(fd.get(), {file_, 5}));
  struct stat truth;
  ASSERT_EQ(::fstat(fd.get(), &truth), 0);
  ASSERT_EQ(keys().size(), 1u);
  auto key = keys()[0];
  EXPECT_EQ(key.inode, truth.st_ino);
  EXPECT_EQ(key.size, 5000u);
  EXPECT_EQ(key.modified_ns, static_cast<__u64>(truth.st_mtim.tv_sec) * 1000000000 +
                                 static_cast<__u64>(truth.st_mtim.tv_nsec));
  EXPECT_NE(key.device, 0u);
  EXPECT_EQ(entry(key).page, 7u);
  EXPECT_EQ(entry(key).file, 5u);
  ASSERT_TRUE(known_->tell(fd.get(), {file_, 5})) << "once more";
  EXPECT_EQ(keys().size(), 1u);
}

TEST_F(KnownFilesTest, OthersAreOthers) {
  auto one = memory_file(5000), another = memory_file(5000);
  ASSERT_TRUE(known_->tell(one.get(), {file_, 5}));
  ASSERT_TRUE(known_->tell(another.get(), {file_, 5}));
  EXPECT_EQ(keys().size(), 2u);
  // Written to, it is another one too.
  timespec later[2] = {{.tv_sec = 1000000000, .tv_nsec = 5}, {.tv_sec = 1000000000, .tv_nsec = 7}};
  ASSERT_EQ(::futimens(one.get(), later), 0);
  ASSERT_TRUE(known_->tell(one.get(), {file_, 5}));
  EXPECT_EQ(keys().size(), 3u);
}

TEST_F(KnownFilesTest, WhatBecomesOfItsTable) {
  auto one = memory_file(5000), copy = memory_file(5000), other = memory_file(5000);
  auto elsewhere = file_with({});
  ASSERT_TRUE(known_->tell(one.get(), {file_, 5}));
  ASSERT_TRUE(known_->tell(copy.get(), {file_, 5}));
  ASSERT_TRUE(known_->tell(other.get(), {elsewhere, 6}));
  file_->state = File::no_memory;
  known_->changed(*file_);
  int lacking = 0;
  for (auto& key : keys()) lacking += entry(key).page == UNWIND_LACK_MEMORY && entry(key).file == 5;
  EXPECT_EQ(lacking, 2);
  known_->forget(*file_);
  ASSERT_EQ(keys().size(), 1u);
  EXPECT_EQ(entry(keys()[0]).page, 7u);
  EXPECT_EQ(known_->size(), 1u);
}

TEST_F(KnownFilesTest, TheVdsoHasNoFile) {
  ASSERT_TRUE(known_->tell_vdso({file_, 5}));
  ASSERT_EQ(keys().size(), 1u);
  unwind_file_key none{};
  EXPECT_EQ(memcmp(&keys()[0], &none, sizeof none), 0);
}

TEST_F(KnownFilesTest, WhatCannotBeMapped) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd from(ends[0]), to(ends[1]);
  EXPECT_FALSE(known_->tell(from.get(), {file_, 5}));
  EXPECT_FALSE(known_->tell(-1, {file_, 5}));
  EXPECT_TRUE(keys().empty());
}

}  // namespace
}  // namespace coretap::unwind
