#include "unwind/known_files.hpp"

#include <bpf/bpf.h>

#include <atomic>

#include "coretap/fd.hpp"
#include "expect.hpp"
#include "symbols/proc_maps.hpp"
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
  const unwind_file wanted{.page = 7,
                           .pages = 2,
                           .file = 300,
                           .extents = {{1, 3, 0x401000 - 0x10000}, {6, 1, 0x506000 - 0x10000}}};
  EXPECT_EQ(memcmp(&entry, &wanted, sizeof wanted), 0)
      << entry.page << " " << entry.pages << " " << entry.file << " " << entry.extents[0].first
      << " " << entry.extents[0].length << " " << entry.extents[1].first;
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

/// Asks the kernel, and reads its map.
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
  static struct stat status(const Fd& fd) {
    struct stat about {};
    EXPECT_EQ(::fstat(fd.get(), &about), 0);
    return about;
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
  auto truth = status(fd);
  ASSERT_EQ(keys().size(), 1u);
  auto key = keys()[0];
  EXPECT_EQ(key.inode, truth.st_ino);
  EXPECT_EQ(key.size, 5000u);
  EXPECT_EQ(key.modified_ns, static_cast<__u64>(truth.st_mtim.tv_sec) * 1000000000 +
                                 static_cast<__u64>(truth.st_mtim.tv_nsec));
  EXPECT_NE(key.superblock, 0u);
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
  // After a write it counts as another file, too.
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

/// Asks the kernel's tree about this process's addresses.
class KernelTree : public KnownFilesTest {
 protected:
  std::optional<unwind_answer> ask(std::uint64_t at) const {
    unwind_answer answer{};
    __u32 zero = 0;
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &at, .ctx_size_in = sizeof at);
    EXPECT_EQ(bpf_prog_test_run_opts(kernel_.program(), &options), 0);
    if (options.retval != 1) return {};
    EXPECT_EQ(bpf_map_lookup_elem(kernel_.fd("unwind_answer"), &zero, &answer), 0);
    return answer;
  }
  static std::uint64_t at(const void* address) { return reinterpret_cast<std::uint64_t>(address); }
};

// Every page of all mappings, also between a few thousand more mappings, and holes.
TEST_F(KernelTree, AgreesWithProcMaps) {
  constexpr std::size_t kMany = 3000, kPage = 4096;
  auto* many = static_cast<char*>(
      ::mmap(nullptr, 2 * kMany * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(many, MAP_FAILED);
  auto file = memory_file(kMany * kPage);
  for (std::size_t i = 0; i < kMany; i++)
    ASSERT_NE(::mmap(many + 2 * i * kPage, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                     file.get(), static_cast<off_t>(i * kPage)),
              MAP_FAILED);
  for (std::size_t i = 0; i + 1 < kMany; i += 7) {
    auto between = ask(at(many + (2 * i + 1) * kPage));
    ASSERT_TRUE(between);
    EXPECT_EQ(between->key.inode, 0u);
  }
  ::munmap(many + kPage, kPage);
  for (auto none : {at(many + kPage), std::uint64_t{0}, UINT64_MAX}) EXPECT_FALSE(ask(none));

  Fd maps(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  std::size_t pages = 0;
  for (auto& m : symbols::read_mappings(maps.get()).executable) {
    if (m.start >> 56) continue;  // vsyscall is not a mapping of the process
    for (auto page = m.start; page < m.end; page += kPage, pages++) {
      auto answer = ask(page + pages % kPage);
      ASSERT_TRUE(answer) << m.path;
      EXPECT_EQ(answer->start, m.start) << m.path;
      EXPECT_EQ(answer->end, m.end) << m.path;
      if (m.has_file()) {
        EXPECT_EQ(answer->page, m.offset / kPage) << m.path;
        EXPECT_EQ(answer->key.inode, m.inode) << m.path;
      }
    }
  }
  ::munmap(many, 2 * kMany * kPage);
  EXPECT_FALSE(ask(at(many)));
  EXPECT_GT(pages, kMany + 500);
}

// A thread replaces, splits and joins mappings all the time: a mapping taken for a whole segment
// must be of the right file.
TEST_F(KernelTree, WholeSegmentsAreNeverMistaken) {
  constexpr std::size_t kPage = 4096;
  struct Kind {
    Fd file;
    std::uint64_t page, pages, inode = status(file).st_ino;
  };
  std::array<Kind, 2> kinds{Kind{memory_file(64 * kPage), 0, 8},
                            Kind{memory_file(64 * kPage), 32, 16}};
  auto* place = static_cast<char*>(
      ::mmap(nullptr, 64 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(place, MAP_FAILED);
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> changes = 0;
  std::thread changer([&] {
    for (std::uint64_t i = 0; !done; i++, changes++) {
      auto& kind = kinds[i % 2];
      auto* to = place + i % 3 * 4 * kPage;
      ::mmap(to, kind.pages * kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, kind.file.get(),
             static_cast<off_t>(kind.page * kPage));
      if (i % 5 == 0) ::mprotect(to + 2 * kPage, 3 * kPage, PROT_READ | PROT_WRITE);
      if (i % 5 == 0) ::mprotect(to + 2 * kPage, 3 * kPage, PROT_READ);
      if (i % 7 == 0) ::munmap(to + kPage, 2 * kPage);
    }
  });
  std::uint64_t whole = 0, wrong = 0;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (std::uint64_t i = 0; std::chrono::steady_clock::now() < until; i++) {
    auto answer = ask(at(place + (1 + i % 24) * kPage));
    if (!answer || !answer->key.inode) continue;
    auto pages = (answer->end - answer->start) / kPage;
    for (auto& kind : kinds) {
      if (answer->page != kind.page || pages != kind.pages) continue;
      whole++;
      bool placed = (answer->start - at(place)) % (4 * kPage) == 0;
      wrong += answer->key.inode != kind.inode || !placed;
    }
  }
  done = true;
  changer.join();
  ::munmap(place, 64 * kPage);
  EXPECT_EQ(wrong, 0u) << "of " << whole << " while " << changes << " changes were made";
  EXPECT_GT(whole, 1000u);
  EXPECT_GT(changes, 1000u);
}

}  // namespace
}  // namespace coretap::unwind
