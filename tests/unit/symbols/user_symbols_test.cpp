#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <thread>

#include "coretap/symbols.hpp"
#include "symbols/elf_symbols.hpp"
#include "test_files.hpp"

extern char** environ;

__attribute__((noinline, used)) static int known_static_function(int n) { return n * 3 + 1; }

// As a child this test prints where its function is, and waits to be looked at.
__attribute__((constructor)) static void act_as_child() {
  if (::getenv("CORETAP_SYMBOLS_CHILD") == nullptr) return;
  const auto address = reinterpret_cast<std::uint64_t>(&known_static_function);
  if (::write(STDOUT_FILENO, &address, sizeof address) != sizeof address) ::_exit(1);
  for (;;) ::pause();
}

namespace coretap {
namespace {

using symbols::test::run;
using symbols::test::ScratchDirectory;

constexpr const char* kName = "known_static_function(int)";

template <class Function>
std::uint64_t address_of(Function* function) {
  return reinterpret_cast<std::uint64_t>(function);
}

class Child {
 public:
  explicit Child(const std::string& path) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::setenv("CORETAP_SYMBOLS_CHILD", "1", 1);
    char* argv[] = {const_cast<char*>(path.c_str()), nullptr};
    if (::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv, environ) != 0) pid_ = -1;
    ::unsetenv("CORETAP_SYMBOLS_CHILD");
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (pid_ > 0 && ::read(ends[0], &address_, sizeof address_) != sizeof address_) address_ = 0;
    ::close(ends[0]);
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }
  std::uint64_t address() const { return address_; }

 private:
  pid_t pid_ = -1;
  std::uint64_t address_ = 0;
};

std::string copy_of_self(const ScratchDirectory& scratch) {
  const std::string path = scratch.path() + "/copy";
  std::filesystem::copy_file("/proc/self/exe", path);
  ::chmod(path.c_str(), 0700);
  return path;
}

TEST(UserSymbols, OwnStaticFunction) {
  UserSymbols user;
  const std::uint64_t address = address_of(&known_static_function);
  const Symbol symbol = user.find(::getpid(), address, true);
  EXPECT_EQ(symbol.name, kName);
  EXPECT_EQ(symbol.offset, 0u);
  EXPECT_EQ(symbol.module, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(user.find(::getpid(), address + 2, true).offset, 2u);
  UserSymbols mangled({.demangle = false});
  EXPECT_EQ(mangled.find(::getpid(), address, true).name, "_ZL21known_static_functioni");
}

TEST(UserSymbols, ReturnAddressBehindTheEndBelongsToTheCaller) {
  UserSymbols user;
  const std::uint64_t start = address_of(&known_static_function);
  const Symbol first = user.find(::getpid(), start, true);
  std::uint64_t end = start;
  while (user.find(::getpid(), end, true).name == kName) ++end;
  const Symbol symbol = user.find(::getpid(), end, false);
  EXPECT_EQ(symbol.name, kName);
  EXPECT_EQ(symbol.offset, end - start);
  EXPECT_EQ(symbol.module_offset, first.module_offset + (end - start));
  EXPECT_NE(user.find(::getpid(), start, false).name, kName);
}

TEST(UserSymbols, SharedLibrary) {
  UserSymbols user;
  const Symbol symbol = user.find(::getpid(), address_of(&::qsort), true);
  EXPECT_NE(symbol.name.find("qsort"), std::string::npos);
  EXPECT_EQ(symbol.offset, 0u);
}

TEST(UserSymbols, Vdso) {
  const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
  if (base == 0) GTEST_SKIP() << "no vdso";
  UserSymbols user;
  std::size_t named = 0;
  for (std::uint64_t at = base; at < base + 4096; ++at) {
    const Symbol symbol = user.find(::getpid(), at, true);
    EXPECT_EQ(symbol.module, "[vdso]");
    if (symbol.name.find("clock_gettime") != std::string::npos) ++named;
  }
  EXPECT_GT(named, 0u);
}

TEST(UserSymbols, UnmappedAndDataAddresses) {
  UserSymbols user;
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX, reinterpret_cast<std::uint64_t>(&user)}) {
    const Symbol symbol = user.find(::getpid(), address, false);
    EXPECT_FALSE(symbol.known());
    EXPECT_EQ(symbol.module, "");
  }
  EXPECT_FALSE(user.find(0, 0x1000, true).known());
  EXPECT_FALSE(user.find(-1, 0x1000, true).known());
  EXPECT_FALSE(user.find(INT32_MAX, 0x1000, true).known());
  user.forget(12345);
}

TEST(UserSymbols, DeletedExecutable) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  Child child(path);
  ASSERT_NE(child.address(), 0u);
  UserSymbols before, after;
  before.remember(child.pid());
  std::filesystem::remove(path);
  if (!std::filesystem::exists("/proc/self/map_files") || ::geteuid() != 0)
    GTEST_SKIP() << "needs the rights for /proc/PID/map_files";
  EXPECT_EQ(before.find(child.pid(), child.address(), true).name, kName);
  const Symbol symbol = after.find(child.pid(), child.address(), true);
  EXPECT_EQ(symbol.name, kName);
  EXPECT_EQ(symbol.module, path);
}

TEST(UserSymbols, ResolvesAfterExit) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  Child child(path);
  ASSERT_NE(child.address(), 0u);
  const pid_t pid = child.pid();
  UserSymbols user, late, forgetful;
  user.remember(pid);
  forgetful.remember(pid);
  child.end();
  user.remember(pid);  // too late, does no harm
  EXPECT_EQ(user.find(pid, child.address(), true).name, kName);
  EXPECT_FALSE(late.find(pid, child.address(), true).known());
  forgetful.forget(pid);
  EXPECT_EQ(forgetful.find(pid, child.address(), true).module, "");
}

TEST(UserSymbols, DoesNotTakeAnotherFileOfTheSameName) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  Child child(path);
  ASSERT_NE(child.address(), 0u);
  const pid_t pid = child.pid();
  UserSymbols user;
  user.remember(pid);
  std::filesystem::rename(path, path + ".old");  // keeps the inode in use
  std::filesystem::copy_file("/proc/self/exe", path);
  child.end();
  const Symbol symbol = user.find(pid, child.address(), true);
  EXPECT_FALSE(symbol.known());
  EXPECT_EQ(symbol.module, path);
}

TEST(UserSymbols, StrippedFileGivesModuleAndOffset) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  if (!run("strip --strip-all " + path)) GTEST_SKIP() << "needs strip";
  Child child(path);
  ASSERT_NE(child.address(), 0u);
  UserSymbols user, own;
  const Symbol symbol = user.find(child.pid(), child.address(), true);
  EXPECT_FALSE(symbol.known());
  EXPECT_EQ(symbol.module, path);
  EXPECT_EQ(symbol.module_offset,
            own.find(::getpid(), address_of(&known_static_function), true).module_offset);
}

TEST(UserSymbols, SeparateDebugFileByBuildId) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  const std::string debug = scratch.path() + "/debug.tmp";
  if (!run("objcopy --only-keep-debug " + path + " " + debug) || !run("strip --strip-all " + path))
    GTEST_SKIP() << "needs objcopy and strip";
  std::string build_id;
  (void)symbols::ElfSymbols::read(
      symbols::test::open_file(path).get(),
      [&](const symbols::DebugFileKey& key, const auto&) { build_id = key.build_id; });
  ASSERT_GE(build_id.size(), 4u);
  const std::string directory = scratch.path() + "/debug/.build-id/" + build_id.substr(0, 2);
  std::filesystem::create_directories(directory);
  // As distributions do: a link to the named file.
  std::filesystem::create_symlink(debug, directory + "/" + build_id.substr(2) + ".debug");
  Child child(path);
  ASSERT_NE(child.address(), 0u);
  UserSymbols user({.debug_root = scratch.path() + "/debug"});
  EXPECT_EQ(user.find(child.pid(), child.address(), true).name, kName);
}

TEST(UserSymbols, JitCodeOfAnonymousMemory) {
  void* memory = ::mmap(nullptr, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::ofstream(path) << std::hex << address << " 100 Jit::method\n";
  UserSymbols user({.refresh_interval = std::chrono::milliseconds(1)});
  const Symbol symbol = user.find(::getpid(), address + 16, true);
  EXPECT_EQ(symbol.name, "Jit::method");
  EXPECT_EQ(symbol.offset, 16u);
  EXPECT_EQ(symbol.module, "[anon]");
  EXPECT_FALSE(user.find(::getpid(), address + 0x200, true).known());
  std::ofstream(path, std::ios::app) << std::hex << address + 0x200 << " 100 Jit::later\n";
  auto name_of_later = [&] { return user.find(::getpid(), address + 0x200, true).name; };
  for (int i = 0; i < 1000 && name_of_later() != "Jit::later"; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(name_of_later(), "Jit::later");
  std::filesystem::remove(path);
  ::munmap(memory, 8192);
}

TEST(UserSymbols, FindsWhatWasMappedAfterTheSnapshot) {
  UserSymbols user({.refresh_interval = std::chrono::milliseconds(1)});
  user.remember(::getpid());
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(user.find(::getpid(), reinterpret_cast<std::uint64_t>(memory), true).module, "[anon]");
  ::munmap(memory, 4096);
}

// A process made of files: what hostile or broken ones look like.
class FakeProcess {
 public:
  explicit FakeProcess(const std::string& maps) {
    scratch_.write("42/maps", maps);
    scratch_.write("42/status", "Name:\tfake\nUid:\t1\t" + std::to_string(::geteuid()) +
                                    "\t3\t4\nNSpid:\t42\t7\n");
    std::filesystem::create_directories(root() + "/tmp");
  }
  std::string root() const { return scratch_.path() + "/42/root"; }
  const ScratchDirectory& scratch() const { return scratch_; }
  UserSymbols symbols(UserSymbolOptions options = {}) const {
    options.proc_root = scratch_.path();
    return UserSymbols(options);
  }

 private:
  ScratchDirectory scratch_;
};

TEST(FakeProcess, JitMapIsNamedAfterTheInnerPid) {
  FakeProcess process("1000-3000 r-xp 00000000 00:00 0\n");
  process.scratch().write("42/root/tmp/perf-7.map", "1000 100 inner\n");
  process.scratch().write("42/root/tmp/perf-42.map", "1000 100 outer\n");
  UserSymbols user = process.symbols();
  EXPECT_EQ(user.find(42, 0x1010, true).name, "inner");
  EXPECT_EQ(user.find(42, 0x1100, false).name, "inner");
  EXPECT_EQ(user.find(42, 0x1100, false).offset, 0x100u);
  EXPECT_FALSE(user.find(42, 0x1100, true).known());
}

TEST(FakeProcess, JitMapOfAForeignOwnerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  FakeProcess process("1000-3000 r-xp 00000000 00:00 0\n");
  const std::string path = process.scratch().write("42/root/tmp/perf-7.map", "1000 100 inner\n");
  ASSERT_EQ(::chown(path.c_str(), 4242, 4242), 0);
  UserSymbols user = process.symbols();
  EXPECT_FALSE(user.find(42, 0x1010, true).known());
}

TEST(FakeProcess, JitMapIsNotUsedForFiles) {
  FakeProcess process("1000-3000 r-xp 00000000 fe:00 99 /usr/lib/nowhere.so\n");
  process.scratch().write("42/root/tmp/perf-7.map", "1000 100 inner\n");
  UserSymbols user = process.symbols();
  const Symbol symbol = user.find(42, 0x1010, true);
  EXPECT_FALSE(symbol.known());
  EXPECT_EQ(symbol.module, "/usr/lib/nowhere.so");
  EXPECT_EQ(symbol.module_offset, 0x10u);
}

// Maps that name a FIFO, a link out of the root, a directory: never opened, never waited for.
TEST(FakeProcess, OpensOnlyRegularFilesInsideTheRoot) {
  FakeProcess process(
      "1000-2000 r-xp 00000000 fe:00 99 /fifo\n"
      "2000-3000 r-xp 00000000 fe:00 99 /link\n"
      "3000-4000 r-xp 00000000 fe:00 99 /tmp\n"
      "4000-5000 r-xp 00000000 fe:00 99 /dev/zero/../../etc/passwd\n"
      "5000-6000 r-xp 00000000 fe:00 99 /other\n");
  const std::string root = process.root();
  ASSERT_EQ(::mkfifo((root + "/fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/bin/true", (root + "/link").c_str()), 0);
  std::filesystem::copy_file("/bin/true", root + "/other");  // another inode than in maps
  UserSymbols user = process.symbols();
  for (std::uint64_t address = 0x1500; address < 0x6000; address += 0x1000) {
    const Symbol symbol = user.find(42, address, true);
    EXPECT_FALSE(symbol.known());
    EXPECT_EQ(symbol.module_offset, 0x500u) << "the offset in the file, as nothing was read";
  }
}

TEST(FakeProcess, FewProcessesAndFilesAreKept) {
  FakeProcess process("1000-3000 r-xp 00000000 00:00 0\n");
  process.scratch().write("42/root/tmp/perf-7.map", "1000 100 inner\n");
  std::filesystem::create_directories(process.scratch().path() + "/43");
  process.scratch().write("43/maps", "1000-3000 r-xp 00000000 00:00 0\n");
  process.scratch().write("44/maps", "1000-3000 r-xp 00000000 00:00 0\n");
  UserSymbols user = process.symbols({.max_processes = 1, .max_files = 0, .max_bytes = 0});
  for (int round = 0; round < 3; ++round)
    for (const pid_t pid : {42, 43, 44})
      EXPECT_EQ(user.find(pid, 0x1010, true).module, "[anon]") << pid;
  UserSymbols own({.max_files = 1, .max_bytes = 1});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(own.find(::getpid(), address_of(&known_static_function), true).name, kName);
    EXPECT_TRUE(own.find(::getpid(), address_of(&::qsort), true).known());
  }
}

// Whose files cost too much to read has frames without names.
TEST(UserSymbols, ReadsNoLongerThanItMay) {
  UserSymbols none({.reading_time = std::chrono::milliseconds(-1'000'000)});
  const Symbol symbol = none.find(::getpid(), address_of(&known_static_function), true);
  EXPECT_FALSE(symbol.known());
  EXPECT_NE(symbol.module.find("unit_tests"), std::string::npos) << symbol.module;
  EXPECT_EQ(none.take_given_up(), std::vector<uid_t>{::geteuid()});
  EXPECT_FALSE(none.find(::getpid(), address_of(&::qsort), true).known());
  EXPECT_TRUE(none.take_given_up().empty()) << "each user once";
  EXPECT_TRUE(UserSymbols().find(::getpid(), address_of(&::qsort), true).known());
}

/// A line of maps: a page of a file.
std::string line(const std::string& at, const std::string& end, const std::string& path) {
  return at + "-" + end + " r-xp 00000000 fe:00 99 " + path + "\n";
}

TEST(Images, EachHasItsOwnNames) {
  FakeProcess process(line("1000", "2000", "/a") + line("4000", "5000", "/same"));
  UserSymbols user = process.symbols();
  user.remember(42, 0, 1);
  process.scratch().write("42/maps", line("1000", "2000", "/b") + line("4000", "5000", "/same"));
  user.remember(42, 0, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
    EXPECT_EQ(user.find(42, 0x1800, true, 2).module, "/b");
    EXPECT_EQ(user.find(42, 0x4800, true, 1).module, "/same");
    EXPECT_EQ(user.find(42, 0x4800, true, 2).module, "/same");
    // Back again: what both have mapped is known by both.
    process.scratch().write("42/maps", line("1000", "2000", "/a"));
    user.remember(42, 0, 1);
  }
}

TEST(Images, OfOthersNothingIsKnown) {
  FakeProcess process(line("1000", "2000", "/a"));
  UserSymbols user = process.symbols();
  EXPECT_EQ(user.find(42, 0x1800, true, 3).module, "/a") << "none was remembered: it is read";
  user.forget(42);
  user.remember(42, 0, 1);
  for (const std::uint32_t image : {0u, 2u, 3u, UINT32_MAX}) {
    const Symbol symbol = user.find(42, 0x1800, true, image);
    EXPECT_EQ(symbol.module, "") << image;
    EXPECT_EQ(symbol.module_offset, 0u);
  }
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
}

TEST(Images, OnlyTheCurrentOneIsReadAnew) {
  FakeProcess process(line("1000", "2000", "/a"));
  UserSymbols user = process.symbols({.refresh_interval = std::chrono::milliseconds(0)});
  user.remember(42, 0, 1);
  user.remember(42, 0, 2);
  process.scratch().write("42/maps", line("1000", "2000", "/b") + line("5000", "6000", "/new"));
  EXPECT_EQ(user.find(42, 0x5800, true, 1).module, "") << "it was not there in that one";
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
  EXPECT_EQ(user.find(42, 0x5800, true, 2).module, "/new");
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
  user.remember(42, 0, 1);  // current again
  process.scratch().write("42/maps", line("7000", "8000", "/newer"));
  EXPECT_EQ(user.find(42, 0x7800, true, 2).module, "");
  EXPECT_EQ(user.find(42, 0x7800, true, 1).module, "/newer");
}

TEST(Images, WhatIsGoneIsKnownUntilAnotherIsThere) {
  FakeProcess process(line("1000", "2000", "/a") + line("5000", "7000", "/gone") +
                      line("9000", "a000", "/last"));
  UserSymbols user = process.symbols();
  user.remember(42, 0, 1);
  process.scratch().write("42/maps", line("1000", "2000", "/a"));
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(42, 0x5800, true, 1).module, "/gone");
  EXPECT_EQ(user.find(42, 0x9fff, true, 1).module, "/last");
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(42, 0x6fff, true, 1).module, "/gone") << "once more";
  // Others at its place; a neighbour is none.
  process.scratch().write("42/maps", line("4000", "5000", "/before") + line("a000", "b000", "/x"));
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(42, 0x5000, true, 1).module, "/gone");
  EXPECT_EQ(user.find(42, 0x4fff, true, 1).module, "/before");
  EXPECT_EQ(user.find(42, 0x9000, true, 1).module, "/last");
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
  process.scratch().write("42/maps", line("5000", "6000", "/other") + line("9000", "a000", "/y"));
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(42, 0x5800, true, 1).module, "/other");
  EXPECT_EQ(user.find(42, 0x9800, true, 1).module, "/y");
  EXPECT_EQ(user.find(42, 0xa800, true, 1).module, "/x");
  // Not in another image, which had none of it.
  user.remember(42, 0, 2);
  EXPECT_EQ(user.find(42, 0x4800, true, 2).module, "");
}

TEST(Images, WhatIsGoneIsNotAnotherProcess) {
  const auto stat = [](int started) {
    std::string text = "42 (fake) S";
    for (int field = 4; field < 22; ++field) text += " 0";
    return text + " " + std::to_string(started) + " 0 0\n";
  };
  FakeProcess process(line("1000", "2000", "/a") + line("5000", "6000", "/gone"));
  process.scratch().write("42/stat", stat(100));
  UserSymbols user = process.symbols();
  user.remember(42, 0, 1);
  process.scratch().write("42/maps", line("1000", "2000", "/a"));
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(42, 0x5800, true, 1).module, "/gone");
  process.scratch().write("42/stat", stat(200));
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(42, 0x5800, true, 1).module, "");
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/a");
}

TEST(Images, AnotherProgramIsNoneOfIt) {
  const auto stat = [](std::uint64_t stack_begin) {
    std::string text = "42 (fake) S";
    for (int field = 4; field < 28; ++field) text += " 9";
    return text + " " + std::to_string(stack_begin) + " 0 0\n";
  };
  FakeProcess process(line("1000", "2000", "/after"));
  process.scratch().write("42/stat", stat(0x7fff70000000));
  UserSymbols user = process.symbols({.refresh_interval = std::chrono::milliseconds(0)});
  // Executed before it could be looked at: not a name of the new program for the old one's stacks.
  user.remember(42, 0, 1, 0x7fff50000000);
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "");
  user.remember(42, 0, 2, 0x7fff70000000 + 4096);  // before its arguments were there
  EXPECT_EQ(user.find(42, 0x1800, true, 2).module, "/after");
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "");
  // Executed afterwards: what was mapped is known, what is mapped by now is not taken for it.
  process.scratch().write("42/maps", line("5000", "6000", "/later"));
  process.scratch().write("42/stat", stat(0x7fff90000000));
  EXPECT_EQ(user.find(42, 0x5800, true, 2).module, "");
  EXPECT_EQ(user.find(42, 0x1800, true, 2).module, "/after");
  // Without the right to know it is as if they were the same.
  process.scratch().write("42/stat", stat(0));
  EXPECT_EQ(user.find(42, 0x5800, true, 2).module, "/later");
}

TEST(Images, ChildrenThatAreGoneHaveTheirParents) {
  FakeProcess process(line("1000", "2000", "/a"));
  UserSymbols user = process.symbols();
  user.remember(42, 0, 1);
  process.scratch().write("42/maps", line("1000", "2000", "/b"));
  user.remember(42, 0, 2);
  user.remember(50, 42, 1);
  EXPECT_EQ(user.find(50, 0x1800, true, 1).module, "/a");
  EXPECT_EQ(user.find(50, 0x1800, true, 2).module, "") << "it was not remembered";
  user.remember(50, 42, 2);
  EXPECT_EQ(user.find(50, 0x1800, true, 2).module, "/b");
  EXPECT_EQ(user.find(50, 0x1800, true, 1).module, "/a");
  EXPECT_EQ(user.find(51, 0x1800, true, 1).module, "") << "no parent";
  user.remember(52, 0, 1);
  EXPECT_EQ(user.find(52, 0x1800, true, 1).module, "");
  // Not of the image that the parent has come to since.
  user.remember(53, 42, 9);
  EXPECT_EQ(user.find(53, 0x1800, true, 9).module, "");
}

TEST(Images, ParentsMayBeKnownLater) {
  FakeProcess process(line("1000", "2000", "/a"));
  std::filesystem::rename(process.scratch().path() + "/42", process.scratch().path() + "/later");
  UserSymbols user = process.symbols();
  user.remember(50, 42, 1);
  user.remember(60, 50, 1);  // a child of the child
  EXPECT_EQ(user.find(60, 0x1800, true, 1).module, "");
  std::filesystem::rename(process.scratch().path() + "/later", process.scratch().path() + "/42");
  user.remember(42, 0, 1);
  EXPECT_EQ(user.find(60, 0x1800, true, 1).module, "/a");
  EXPECT_EQ(user.find(50, 0x1800, true, 1).module, "/a");
}

TEST(Images, ProcessesThatAreEachOthersChildren) {
  FakeProcess process("");
  UserSymbols user = process.symbols();
  user.remember(50, 51, 1);
  user.remember(51, 50, 1);
  user.remember(52, 52, 1);
  for (const pid_t pid : {50, 51, 52}) EXPECT_EQ(user.find(pid, 0x1800, true, 1).module, "");
}

TEST(Images, TheLeastRecentlyUsedGoFirst) {
  FakeProcess process(line("1000", "2000", "/1"));
  UserSymbols user = process.symbols({.max_processes = 3});
  const auto remember = [&](std::uint32_t image) {
    process.scratch().write("42/maps", line("1000", "2000", "/" + std::to_string(image)));
    user.remember(42, 0, image);
  };
  for (const std::uint32_t image : {1, 2, 3}) remember(image);
  EXPECT_EQ(user.find(42, 0x1800, true, 1).module, "/1");  // 2 is the oldest
  remember(4);
  EXPECT_EQ(user.find(42, 0x1800, true, 2).module, "");
  for (const std::uint32_t image : {1, 3, 4})
    EXPECT_EQ(user.find(42, 0x1800, true, image).module, "/" + std::to_string(image));
}

TEST(Images, AllAreForgottenTogether) {
  FakeProcess process(line("1000", "2000", "/a"));
  UserSymbols user = process.symbols();
  for (const std::uint32_t image : {1, 2, 3}) user.remember(42, 0, image);
  user.forget(42);
  std::filesystem::remove(process.scratch().path() + "/42/maps");
  for (const std::uint32_t image : {1, 2, 3})
    EXPECT_EQ(user.find(42, 0x1800, true, image).module, "");
}

TEST(Images, ARealProcessAndItsFiles) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  Child child(path);
  ASSERT_NE(child.address(), 0u);
  UserSymbols user;
  user.remember(child.pid(), 0, 1);
  user.remember(child.pid(), 0, 2);
  EXPECT_EQ(user.find(child.pid(), child.address(), true, 1).name, kName);
  EXPECT_EQ(user.find(child.pid(), child.address(), true, 2).name, kName);
  EXPECT_EQ(user.find(child.pid(), child.address(), true, 3).module, "");
}

TEST(FakeProcess, SurvivesDamagedMaps) {
  FakeProcess process(places::file_text(symbols::test::sample("maps_damaged.txt")));
  UserSymbols user = process.symbols();
  EXPECT_EQ(user.find(42, 0x5800, true).module, "/good");
  EXPECT_FALSE(user.find(42, 0x1800, true).known());
  EXPECT_TRUE(user.find(42, 0xb800, true).module.starts_with("/d/d/"));
}

}  // namespace
}  // namespace coretap
