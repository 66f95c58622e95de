#include "program/probe_target.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <sys/sysmacros.h>

#include "../symbols/test_files.hpp"
#include "expect.hpp"
#include "symbols/elf_symbols.hpp"

extern "C" {
__attribute__((noinline, used)) int probe_target_test_function(int n) { return n + 5; }
}

namespace coretap {
namespace {

using symbols::find_function;
using symbols::FunctionPlace;
using symbols::test::open_file;

std::string own_image() { return places::file_text("/proc/self/exe"); }

std::string with_header(std::string image, void (*change)(Elf64_Ehdr&)) {
  Elf64_Ehdr header;
  memcpy(&header, image.data(), sizeof header);
  change(header);
  memcpy(image.data(), &header, sizeof header);
  return image;
}
/// Without section headers, as by sstrip.
std::string stripped() {
  return with_header(own_image(), [](Elf64_Ehdr& h) { h.e_shoff = h.e_shnum = h.e_shstrndx = 0; });
}

FunctionPlace::State state_of(const ScratchDirectory& scratch, const std::string& image) {
  auto file = open_file(scratch.write("file", image));
  return find_function(file.get(), "probe_target_test_function").state;
}

TEST(FindFunction, IsWhereTheCodeIs) {
  auto file = open_file("/proc/self/exe");
  auto place = find_function(file.get(), "probe_target_test_function");
  ASSERT_EQ(place.state, FunctionPlace::found);
  ASSERT_EQ(place.offsets.size(), 1u);
  char bytes[8];
  ASSERT_EQ(pread(file.get(), bytes, sizeof bytes, static_cast<off_t>(place.offsets[0])), 8);
  EXPECT_EQ(memcmp(bytes, reinterpret_cast<const void*>(&probe_target_test_function), 8), 0);
}

TEST(FindFunction, SaysWhyNot) {
  ScratchDirectory scratch;
  auto self = open_file("/proc/self/exe");
  EXPECT_EQ(find_function(self.get(), "probe_target_test_functio").state, FunctionPlace::absent);
  EXPECT_EQ(find_function(self.get(), "").state, FunctionPlace::absent);
  EXPECT_EQ(find_function(-1, "main").state, FunctionPlace::no_elf);
  for (auto* image : {"", "\177ELF", "#!/bin/sh\n"})
    EXPECT_EQ(state_of(scratch, image), FunctionPlace::no_elf) << image;
  EXPECT_EQ(state_of(scratch, stripped()), FunctionPlace::stripped);
  EXPECT_EQ(state_of(scratch, with_header(own_image(), [](Elf64_Ehdr& h) { h.e_machine ^= 1; })),
            FunctionPlace::foreign);
  EXPECT_EQ(state_of(scratch, with_header(own_image(), [](Elf64_Ehdr& h) { h.e_phnum = 0; })),
            FunctionPlace::outside)
      << "symbols stay, code is nowhere";
}

TEST(FindFunction, RefusesWhatIsChosenAtRunTime) {
  Dl_info info{};
  if (!gnu_get_libc_version() ||
      !dladdr(reinterpret_cast<const void*>(&gnu_get_libc_version), &info))
    GTEST_SKIP() << "no shared glibc";
  auto file = open_file(info.dli_fname);
  if (find_function(file.get(), "gnu_get_libc_version").state != FunctionPlace::found)
    GTEST_SKIP() << "no shared glibc";
  EXPECT_EQ(find_function(file.get(), "memcpy").state, FunctionPlace::indirect);
}

// A process that maps thousands of files with that name does not flood the output.
TEST(ProbeFinder, CountsFilesBeyondTheMost) {
  ScratchDirectory scratch;
  std::string maps;
  for (unsigned i = 0; i < 300; i++) {
    auto directory = fmt::format("d{}", i);
    auto path = scratch.write(directory + "/libx.so", i ? "" : own_image());
    struct stat st;
    ASSERT_EQ(stat(path.c_str(), &st), 0);
    maps += fmt::format("{:x}-{:x} r-xp 00000000 {:02x}:{:02x} {} {}\n", 0x100000 + i * 0x1000,
                        0x101000 + i * 0x1000, major(st.st_dev), minor(st.st_dev), st.st_ino, path);
  }
  fs::create_directories(scratch.path() + "/proc/7");
  fs::create_directory_symlink("/", scratch.path() + "/proc/7/root");
  scratch.write("proc/7/maps", maps);
  Config config;
  ProbeFinder finder(config, scratch.path() + "/proc", {scratch.path() + "/none"});
  auto found = finder.find("libx.so", "probe_target_test_function");
  ASSERT_TRUE(found) << found.error().why;
  EXPECT_EQ(found->points.size(), 1u);
  ASSERT_EQ(found->left_out.size(), 256u) << "255 are no ELF files";
  EXPECT_TRUE(found->left_out[0].starts_with("44 more ")) << found->left_out[0];
}

TEST(ProbeTarget, Names) {
  auto [library, symbol] = split_target("libc.so.6:getaddrinfo");
  EXPECT_EQ(library, "libc.so.6");
  EXPECT_EQ(symbol, "getaddrinfo");
  for (auto [yes, name] : {std::pair{"libc.so.6", "libc"},
                           {"ld-musl-x86_64.so.1", "libc"},
                           {"libc.musl-aarch64.so.1", "libc"},
                           {"libreadline.so.8.2", "libreadline.so"},
                           {"bash", "bash"}})
    EXPECT_TRUE(is_library(yes, name)) << yes;
  for (auto* no : {"libc-2.31.so.6x", "libcrypt.so.1", "libc.so", "ld-linux-x86-64.so.2", "libc"})
    EXPECT_FALSE(is_library(no, "libc")) << no;
  for (auto* no : {"libreadline.so.8-old", "libreadline.so8"})
    EXPECT_FALSE(is_library(no, "libreadline.so")) << no;
  for (auto* no : {"bash.1", "rbash"}) EXPECT_FALSE(is_library(no, "bash")) << no;
}

/// A procfs of plain files.
struct Finder : testing::Test {
  ScratchDirectory scratch;
  Config config;
  std::string library = scratch.write("system/libown.so.1", own_image());
  std::string other = scratch.write("other/libown.so.1", own_image() + "x");
  std::string bare = scratch.write("bare/libown.so.2", stripped());

  void process(const std::string& pid, const std::string& shown, const std::string& file) {
    auto directory = scratch.path() + "/proc/" + pid;
    struct stat st {};
    stat(file.c_str(), &st);
    scratch.write("proc/" + pid + "/maps", "1000-2000 r-xp 00000000 00:01 " +
                                               std::to_string(st.st_ino) + " " + shown + "\n");
    mkdir((directory + "/map_files").c_str(), 0700);
    (void)!symlink(file.c_str(), (directory + "/map_files/1000-2000").c_str());
    (void)!symlink(file.c_str(), (directory + "/exe").c_str());
  }
  Result<ProbePoints> find(std::string_view symbol = "probe_target_test_function") {
    ProbeFinder finder(config, scratch.path() + "/proc", {scratch.path() + "/system"});
    return finder.find("libown.so", symbol);
  }
};

TEST_F(Finder, AllDistinctFilesOnce) {
  process("10", "/lib/libown.so.1", library);
  process("11", "/lib/libown.so.1", other);
  process("12", "/lib/libown.so.1 (deleted)", other);
  process("13", "/lib/libown.so.2", bare);
  process("14", "/lib/libother.so.1", bare);
  auto found = find();
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_EQ(found->points.size(), 2u);
  EXPECT_EQ(found->points[0].path, library) << "the system's first";
  EXPECT_EQ(found->points[1].path, "/lib/libown.so.1") << "as that process names it";
  ASSERT_EQ(found->left_out.size(), 1u);
  EXPECT_EQ(found->left_out[0], "/lib/libown.so.2 has no symbols (stripped)");
  EXPECT_TRUE(fs::equivalent(found->points[1].open_path(), other));
}

TEST_F(Finder, OnlyThoseOfTheProcess) {
  process("11", "/lib/libown.so.1", other);
  process("12", "/lib/libown.so.1", library);
  config.tasks.pids = {11};
  auto found = find();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->points.size(), 1u);
  EXPECT_EQ(found->points[0].path, "/lib/libown.so.1");
}

TEST_F(Finder, TheProgramItselfWhereNoLibraryIs) {
  process("11", "/bin/static", other);
  config.tasks.pids = {11};
  auto found = find();
  ASSERT_TRUE(found) << found.error().why;
  EXPECT_EQ(found->points.at(0).path, other);
  process("12", "/bin/stripped", bare);
  config.tasks.pids = {12};
  found = find();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().status, kUnsupported);
  EXPECT_TRUE(says(found.error().why, "stripped"));
  EXPECT_TRUE(says(found.error().hint, "with symbols"));
}

TEST_F(Finder, AProgramOnlyByItsName) {
  process("11", "/bin/tool3.11", other);
  config.tasks.pids = {11};
  ProbeFinder finder(config, scratch.path() + "/proc", {scratch.path() + "/system"});
  EXPECT_EQ(finder.names_of_processes(), Words{"tool3.11"});
  EXPECT_FALSE(finder.files("nosuch", true));
  EXPECT_FALSE(finder.files("tool4", true));
  EXPECT_TRUE(finder.files("tool3.11", true)) << "a mapped file";
  EXPECT_FALSE(finder.files("libown.so", true)) << "the program is linked dynamically";
  scratch.write("proc/11/comm", "tool\n");
  EXPECT_TRUE(finder.files("tool", true));
}

TEST_F(Finder, AnotherFileByOption) {
  config.probes.library = other;
  auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->points.at(0).path, other);
  EXPECT_FALSE(find("no_such_function"));
  config.probes.library = scratch.path() + "/none";
  auto none = find();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, kUsage);
  config.probes.library = scratch.path();
  EXPECT_FALSE(find()) << "a directory";
  config.probes.library = "libnone.so";
  EXPECT_FALSE(find());
}

}  // namespace
}  // namespace coretap
