#include "symbols/numbered_files.hpp"

#include <sys/auxv.h>

#include "coretap/symbols.hpp"
#include "expect.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/proc_maps.hpp"
#include "test_files.hpp"

extern "C" __attribute__((noinline, used)) int numbered_function(int n) { return n * 5 + 2; }

namespace coretap::symbols {
namespace {

std::uint16_t number_of(NumberedFiles& files, const std::string& path, std::uint64_t base = 0) {
  auto handle = open_handle(path, true);
  return files.number(*identity_of(handle.get()), path, base, handle, 0);
}

std::string content(const Fd& fd) { return fd ? read_at(fd.get(), 0, 100) : "none"; }

TEST(NumberedFiles, EachHasOne) {
  ScratchDirectory scratch;
  auto a = scratch.write("a", "one"), b = scratch.write("b", "another");
  NumberedFiles files;
  EXPECT_EQ(files.find(0), nullptr);
  EXPECT_EQ(number_of(files, a, 0x1000), 1u);
  EXPECT_EQ(number_of(files, b), 2u);
  EXPECT_EQ(number_of(files, a, 0x1000), 1u);
  fs::create_hard_link(a, scratch.path() + "/link");
  EXPECT_EQ(number_of(files, scratch.path() + "/link"), 1u);
  ASSERT_NE(files.find(1), nullptr);
  EXPECT_EQ(files.find(1)->path, a);
  EXPECT_EQ(files.find(1)->base, 0x1000u);
  EXPECT_EQ(content(files.open(*files.find(2), 0)), "another");
  EXPECT_EQ(files.find(3), nullptr);
  EXPECT_EQ(files.find(UINT64_MAX), nullptr);
}

TEST(NumberedFiles, AnotherFileOfTheSameNameIsNotOpened) {
  ScratchDirectory scratch;
  auto path = scratch.write("a", "one");
  NumberedFiles files;
  ASSERT_EQ(number_of(files, path), 1u);
  // Without the handle.
  NumberedFile file{.id = files.find(1)->id, .path = path};
  EXPECT_EQ(content(files.open(file, 0)), "one");
  fs::rename(path, scratch.path() + "/moved");
  scratch.write("a", "two");
  EXPECT_FALSE(files.open(file, 0));
  EXPECT_EQ(content(files.open(*files.find(1), 0)), "one");
  EXPECT_EQ(number_of(files, path), 2u);
  EXPECT_EQ(content(files.open(*files.find(2), 0)), "two");
}

TEST(NumberedFiles, HandlesOfDeletedFilesAreKept) {
  ScratchDirectory scratch;
  NumberedFiles files;
  for (std::size_t i = 0; i <= NumberedFiles::kMostHandles; i++) {
    auto path = scratch.write(std::to_string(i), std::to_string(i));
    auto handle = open_handle(path, true);
    auto id = *identity_of(handle.get());
    fs::remove(path);
    ASSERT_EQ(files.number(id, path, 0, handle, 0), i + 1);
  }
  EXPECT_EQ(content(files.open(*files.find(2), 0)), "1");
  EXPECT_FALSE(files.open(*files.find(1), 0)) << "the oldest one went";
}

TEST(NumberedFiles, SystemFilesAreFoundAgain) {
  const std::string path = "/usr/bin/env";
  NumberedFiles files;
  ASSERT_EQ(number_of(files, path), 1u);
  EXPECT_FALSE(files.find(1)->handle) << "nothing is kept busy";
  EXPECT_TRUE(files.open(*files.find(1), 0));
}

TEST(NumberedFiles, InTheRootOfAProcessThatHasIt) {
  ScratchDirectory scratch;
  auto inside = scratch.write("inside", "seen from there");
  auto handle = open_handle(inside, true);
  fs::create_directories(scratch.path() + "/proc/77");
  fs::create_directory_symlink(scratch.path(), scratch.path() + "/proc/77/root");
  NumberedFiles files(scratch.path() + "/proc");
  ASSERT_EQ(files.number(*identity_of(handle.get()), "/inside", 0, handle, 0), 1u);
  // Without the handle, found by the process's root.
  NumberedFile file{.id = *identity_of(handle.get()), .path = "/inside"};
  EXPECT_FALSE(files.open(file, 0));
  EXPECT_FALSE(files.open(file, 78));
  EXPECT_EQ(content(files.open(file, 77)), "seen from there");
  file.mapped_by = 77;
  EXPECT_EQ(content(files.open(file, 78)), "seen from there");
}

TEST(NumberedFiles, NoMoreThanThereIsRoomFor) {
  ScratchDirectory scratch;
  auto handle = open_handle(scratch.write("a", "one"), true);
  NumberedFiles files;
  for (std::size_t i = 1; i <= NumberedFiles::kMost; i++)
    ASSERT_EQ(files.number({1, i, 1, 1}, "/none", 0, Fd(), 0), i);
  EXPECT_EQ(number_of(files, scratch.path() + "/a"), 0u);
  EXPECT_EQ(files.number({1, 7, 1, 1}, "/none", 0, Fd(), 0), 7u);
}

std::uint64_t frame(std::uint64_t number, std::uint64_t place) {
  return STACK_IN_FILE | number << STACK_PLACE_BITS | place;
}

// As in the kernel program: an offset in the file, for any process that runs it.
TEST(NumberedFiles, FunctionsByTheirPlaces) {
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  UserSymbols user;
  const auto address = reinterpret_cast<std::uint64_t>(&numbered_function);
  const Symbol known = user.find(::getpid(), address, true);
  ASSERT_EQ(known.name, "numbered_function");
  NumberedFiles files;
  const std::uint64_t base = known.module_offset & ~0xffffULL;
  ASSERT_EQ(number_of(files, self, base), 1u);
  const auto place = known.module_offset - base;
  UserSymbols other;
  Symbol found = other.find_in_file(files, frame(1, place), 0, true);
  EXPECT_EQ(found.name, "numbered_function");
  EXPECT_EQ(found.offset, 0u);
  EXPECT_EQ(found.module, self);
  EXPECT_EQ(found.module_offset, known.module_offset);
  found = other.find_in_file(files, frame(1, place + 2) | STACK_EXACT, 0, true);
  EXPECT_EQ(found.offset, 2u);
  // For a return address the byte before is looked up.
  found = other.find_in_file(files, frame(1, place), 0, false);
  EXPECT_NE(found.name, "numbered_function");
  EXPECT_EQ(found.module_offset, known.module_offset);
  EXPECT_FALSE(other.find_in_file(files, frame(1, STACK_PLACE_MASK), 0, true).known());
  found = other.find_in_file(files, frame(2, place), 0, true);
  EXPECT_FALSE(found.known());
  EXPECT_TRUE(found.module.empty()) << "no such number";
}

TEST(NumberedFiles, FilesThatAreGone) {
  ScratchDirectory scratch;
  const auto copy = scratch.path() + "/copy";
  fs::copy_file("/proc/self/exe", copy);
  UserSymbols user;
  const Symbol known =
      user.find(::getpid(), reinterpret_cast<std::uint64_t>(&numbered_function), true);
  NumberedFiles files;
  ASSERT_EQ(number_of(files, copy), 1u);
  fs::remove(copy);
  const auto found = user.find_in_file(files, frame(1, known.module_offset), 0, true);
  EXPECT_EQ(found.name, "numbered_function");
  EXPECT_EQ(found.module, copy);
  EXPECT_EQ(found.module_offset, known.module_offset);
  ASSERT_EQ(files.number({1, 7, 1, 1}, "/none", 0, Fd(), 0), 2u);
  EXPECT_FALSE(user.find_in_file(files, frame(2, known.module_offset), 0, true).known());
}

TEST(NumberedFiles, TheVdso) {
  const std::uint64_t at = ::getauxval(AT_SYSINFO_EHDR);
  if (at == 0) GTEST_SKIP() << "no vdso";
  std::string image;
  const Fd maps = open_regular(open_handle("/proc/self/maps", false), UINT64_MAX);
  for (const auto& m : read_mappings(maps.get()).executable)
    if (m.start == at) image.assign(reinterpret_cast<const char*>(at), m.end - m.start);
  ASSERT_FALSE(image.empty());
  NumberedFiles files;
  const auto number = files.number_of_vdso(image, 0);
  ASSERT_NE(number, 0u);
  EXPECT_EQ(files.number_of_vdso(image, 0), number);
  EXPECT_EQ(files.number_of_vdso(image + "x", 0), 0u) << "another one has none";
  UserSymbols user;
  std::size_t named = 0;
  for (std::uint64_t place = 0; place < image.size(); place++) {
    const auto found = user.find_in_file(files, frame(number, place), 0, true);
    EXPECT_EQ(found.module, "[vdso]");
    named += found.known();
  }
  EXPECT_GT(named, 50u);
}

}  // namespace
}  // namespace coretap::symbols
