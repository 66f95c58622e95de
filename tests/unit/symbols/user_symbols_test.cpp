#include <sys/auxv.h>

#include "coretap/symbols.hpp"
#include "expect.hpp"
#include "symbols/elf_symbols.hpp"
#include "test_files.hpp"

__attribute__((noinline, used)) static int known_static_function(int n) { return n * 3 + 1; }

// In a child this test prints its function's address, and waits.
__attribute__((constructor)) static void act_as_child() {
  if (::getenv("CORETAP_SYMBOLS_CHILD") == nullptr) return;
  const auto address = reinterpret_cast<std::uint64_t>(&known_static_function);
  if (::write(STDOUT_FILENO, &address, sizeof address) != sizeof address) ::_exit(1);
  for (;;) ::pause();
}

namespace coretap {
namespace {

constexpr const char* kName = "known_static_function(int)";

template <class Function>
std::uint64_t address_of(Function* function) {
  return reinterpret_cast<std::uint64_t>(function);
}

class Child {
 public:
  explicit Child(const std::string& path) {
    Pipe pipe;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe.writer, STDOUT_FILENO);
      ::setenv("CORETAP_SYMBOLS_CHILD", "1", 1);
      ::execl(path.c_str(), path.c_str(), nullptr);
      ::_exit(127);
    }
    Pipe::shut(pipe.writer);
    if (::read(pipe.reader, &address_, sizeof address_) != sizeof address_) address_ = 0;
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
  std::string path = scratch.path() + "/copy";
  fs::copy_file("/proc/self/exe", path);
  ::chmod(path.c_str(), 0700);
  return path;
}

/// A copy of this program, waiting.
struct RunningCopy {
  ScratchDirectory scratch;
  std::string path = copy_of_self(scratch);
  Child child{path};
  pid_t pid = child.pid();
  std::string name(UserSymbols& user) const {
    EXPECT_NE(child.address(), 0u);
    return user.find(pid, child.address(), true).name;
  }
};

TEST(UserSymbols, OwnStaticFunction) {
  UserSymbols user;
  const std::uint64_t address = address_of(&known_static_function);
  const Symbol symbol = user.find(::getpid(), address, true);
  EXPECT_EQ(symbol.name, kName);
  EXPECT_EQ(symbol.offset, 0u);
  EXPECT_EQ(symbol.module, fs::read_symlink("/proc/self/exe").string());
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
  RunningCopy copy;
  UserSymbols before, after;
  before.remember(copy.pid);
  fs::remove(copy.path);
  if (!fs::exists("/proc/self/map_files") || ::geteuid() != 0)
    GTEST_SKIP() << "needs the rights for /proc/PID/map_files";
  EXPECT_EQ(copy.name(before), kName);
  EXPECT_EQ(copy.name(after), kName);
  EXPECT_EQ(after.find(copy.pid, copy.child.address(), true).module, copy.path);
}

TEST(UserSymbols, ResolvesAfterExit) {
  RunningCopy copy;
  UserSymbols user, late, forgetful;
  user.remember(copy.pid);
  forgetful.remember(copy.pid);
  copy.child.end();
  user.remember(copy.pid);  // too late, but harmless
  EXPECT_EQ(copy.name(user), kName);
  EXPECT_FALSE(late.find(copy.pid, copy.child.address(), true).known());
  forgetful.forget(copy.pid);
  EXPECT_EQ(forgetful.find(copy.pid, copy.child.address(), true).module, "");
}

TEST(UserSymbols, DoesNotTakeAnotherFileOfTheSameName) {
  RunningCopy copy;
  UserSymbols user;
  user.remember(copy.pid);
  fs::rename(copy.path, copy.path + ".old");  // keeps the inode in use
  fs::copy_file("/proc/self/exe", copy.path);
  copy.child.end();
  const Symbol symbol = user.find(copy.pid, copy.child.address(), true);
  EXPECT_FALSE(symbol.known());
  EXPECT_EQ(symbol.module, copy.path);
}

TEST(UserSymbols, StrippedFileGivesModuleAndOffset) {
  ScratchDirectory scratch;
  const std::string path = copy_of_self(scratch);
  if (!succeeds("strip --strip-all " + path)) GTEST_SKIP() << "needs strip";
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
  if (!succeeds("objcopy --only-keep-debug " + path + " " + debug) ||
      !succeeds("strip --strip-all " + path))
    GTEST_SKIP() << "needs objcopy and strip";
  std::string build_id;
  (void)symbols::ElfSymbols::read(
      symbols::test::open_file(path).get(),
      [&](const symbols::DebugFileKey& key, const auto&) { build_id = key.build_id; });
  ASSERT_GE(build_id.size(), 4u);
  const std::string directory = scratch.path() + "/debug/.build-id/" + build_id.substr(0, 2);
  fs::create_directories(directory);
  // As in distributions: a link to the named file.
  fs::create_symlink(debug, directory + "/" + build_id.substr(2) + ".debug");
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
  EXPECT_TRUE(symbol.compiled);
  const Symbol unknown = user.find(::getpid(), address + 0x200, true);
  EXPECT_FALSE(unknown.known());
  EXPECT_TRUE(unknown.compiled) << "code that no file has";
  std::ofstream(path, std::ios::app) << std::hex << address + 0x200 << " 100 Jit::later\n";
  auto name_of_later = [&] { return user.find(::getpid(), address + 0x200, true).name; };
  for (int i = 0; i < 1000 && name_of_later() != "Jit::later"; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(name_of_later(), "Jit::later");
  fs::remove(path);
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

// A process made of files: as hostile or broken ones look.
class FakeProcess {
 public:
  explicit FakeProcess(const std::string& maps) {
    scratch_.write("42/maps", maps);
    scratch_.write("42/status", "Name:\tfake\nUid:\t1\t" + std::to_string(::geteuid()) +
                                    "\t3\t4\nNSpid:\t42\t7\n");
    fs::create_directories(root() + "/tmp");
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

/// A process with code generated at run time.
struct JitProcess : FakeProcess {
  explicit JitProcess(const std::string& maps = "1000-3000 rwxp 00000000 00:00 0\n")
      : FakeProcess(maps) {}
  std::string map = scratch().write("42/root/tmp/perf-7.map", "1000 100 inner\n");
  UserSymbols user = symbols();
};

TEST(FakeProcess, JitMapIsNamedAfterTheInnerPid) {
  JitProcess process;
  process.scratch().write("42/root/tmp/perf-42.map", "1000 100 outer\n");
  EXPECT_EQ(process.user.find(42, 0x1010, true).name, "inner");
  EXPECT_EQ(process.user.find(42, 0x1100, false).name, "inner");
  EXPECT_EQ(process.user.find(42, 0x1100, false).offset, 0x100u);
  EXPECT_FALSE(process.user.find(42, 0x1100, true).known());
}

// After a container's last process has exited its /tmp has no path.
TEST(FakeProcess, JitMapIsReadAfterTheEnd) {
  JitProcess process;
  process.user.remember(42, 0, 0, 0);
  fs::rename(process.scratch().in("42"), process.scratch().in("ended"));
  EXPECT_EQ(process.user.find(42, 0x1010, true).name, "inner");
}

TEST(FakeProcess, JitMapOfAForeignOwnerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  JitProcess process;
  ASSERT_EQ(::chown(process.map.c_str(), 4242, 4242), 0);
  EXPECT_FALSE(process.user.find(42, 0x1010, true).known());
}

TEST(FakeProcess, JitMapIsNotUsedForFiles) {
  JitProcess process("1000-3000 r-xp 00000000 fe:00 99 /usr/lib/nowhere.so\n");
  const Symbol symbol = process.user.find(42, 0x1010, true);
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
  fs::copy_file("/bin/true", root + "/other");  // another inode than in maps
  UserSymbols user = process.symbols();
  for (std::uint64_t address = 0x1500; address < 0x6000; address += 0x1000) {
    const Symbol symbol = user.find(42, address, true);
    EXPECT_FALSE(symbol.known());
    EXPECT_EQ(symbol.module_offset, 0x500u) << "the offset in the file, as nothing was read";
  }
}

TEST(FakeProcess, FewProcessesAndFilesAreKept) {
  JitProcess process;
  for (auto* maps : {"43/maps", "44/maps"})
    process.scratch().write(maps, "1000-3000 r-xp 00000000 00:00 0\n");
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

// If a process's files take too long to read, its frames have no names.
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

class Images : public testing::Test {
 protected:
  void maps(const std::string& lines) { process.scratch().write("42/maps", lines); }
  void remember(std::uint32_t image, const std::string& lines = "") {
    if (!lines.empty()) maps(lines);
    user.remember(42, 0, image);
  }
  Words modules(std::uint32_t image, std::initializer_list<std::uint64_t> addresses) {
    Words all;
    for (auto address : addresses) all.push_back(module(address, image));
    return all;
  }
  std::string module(std::uint64_t address, std::uint32_t image, pid_t pid = 42) {
    return user.find(pid, address, true, image).module;
  }
  /// Sets a field of /proc/42/stat, from the fourth on.
  void stat(int field, std::uint64_t value) {
    std::string text = "42 (fake) S";
    for (int i = 4; i < field; ++i) text += " 9";
    process.scratch().write("42/stat", text + " " + std::to_string(value) + " 0 0\n");
  }
  FakeProcess process{line("1000", "2000", "/a")};
  UserSymbols user = process.symbols();
};

TEST_F(Images, EachHasItsOwnNames) {
  remember(1, line("1000", "2000", "/a") + line("4000", "5000", "/same"));
  remember(2, line("1000", "2000", "/b") + line("4000", "5000", "/same"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(modules(1, {0x1800, 0x4800}), (Words{"/a", "/same"}));
    EXPECT_EQ(modules(2, {0x1800, 0x4800}), (Words{"/b", "/same"}));
    // Back again: mappings of both images are known.
    remember(1, line("1000", "2000", "/a"));
  }
}

TEST_F(Images, OfOthersNothingIsKnown) {
  EXPECT_EQ(module(0x1800, 3), "/a") << "none was remembered: it is read";
  user.forget(42);
  remember(1);
  for (const std::uint32_t image : {0u, 2u, 3u, UINT32_MAX}) {
    const Symbol symbol = user.find(42, 0x1800, true, image);
    EXPECT_EQ(symbol.module, "") << image;
    EXPECT_EQ(symbol.module_offset, 0u);
  }
  EXPECT_EQ(module(0x1800, 1), "/a");
}

TEST_F(Images, OnlyTheCurrentOneIsReadAnew) {
  user = process.symbols({.refresh_interval = std::chrono::milliseconds(0)});
  remember(1);
  remember(2);
  maps(line("1000", "2000", "/b") + line("5000", "6000", "/new"));
  EXPECT_EQ(module(0x5800, 1), "") << "it was not there in that one";
  EXPECT_EQ(module(0x1800, 1), "/a");
  EXPECT_EQ(module(0x5800, 2), "/new");
  EXPECT_EQ(module(0x1800, 1), "/a");
  remember(1);  // the most recent again
  maps(line("7000", "8000", "/newer"));
  EXPECT_EQ(module(0x7800, 2), "");
  EXPECT_EQ(module(0x7800, 1), "/newer");
}

TEST_F(Images, WhatIsGoneIsKnownUntilAnotherIsThere) {
  remember(1, line("1000", "2000", "/a") + line("5000", "7000", "/gone") +
                  line("9000", "a000", "/last"));
  remember(1, line("1000", "2000", "/a"));
  EXPECT_EQ(modules(1, {0x5800, 0x9fff, 0x1800}), (Words{"/gone", "/last", "/a"}));
  remember(1);
  EXPECT_EQ(module(0x6fff, 1), "/gone") << "once more";
  // Replaced by other mappings; an adjacent one does not replace it.
  remember(1, line("4000", "5000", "/before") + line("a000", "b000", "/x"));
  EXPECT_EQ(modules(1, {0x5000, 0x4fff, 0x9000, 0x1800}),
            (Words{"/gone", "/before", "/last", "/a"}));
  remember(1, line("5000", "6000", "/other") + line("9000", "a000", "/y"));
  EXPECT_EQ(modules(1, {0x5800, 0x9800, 0xa800}), (Words{"/other", "/y", "/x"}));
  // Not in another image, which never had these mappings.
  remember(2);
  EXPECT_EQ(module(0x4800, 2), "");
}

TEST_F(Images, WhatIsGoneIsNotAnotherProcess) {
  maps(line("1000", "2000", "/a") + line("5000", "6000", "/gone"));
  stat(22, 100);
  remember(1);
  remember(1, line("1000", "2000", "/a"));
  EXPECT_EQ(module(0x5800, 1), "/gone");
  stat(22, 200);
  remember(1);
  EXPECT_EQ(modules(1, {0x5800, 0x1800}), (Words{"", "/a"}));
}

TEST_F(Images, AnotherProgramIsNoneOfIt) {
  maps(line("1000", "2000", "/after"));
  stat(28, 0x7fff70000000);
  user = process.symbols({.refresh_interval = std::chrono::milliseconds(0)});
  // Exec before it could be read: the new program's names are not for the old one's stacks.
  user.remember(42, 0, 1, 0x7fff50000000);
  EXPECT_EQ(module(0x1800, 1), "");
  user.remember(42, 0, 2, 0x7fff70000000 + 4096);  // before its arguments were set
  EXPECT_EQ(module(0x1800, 2), "/after");
  EXPECT_EQ(module(0x1800, 1), "");
  // Exec afterwards: earlier mappings are known, current ones are not used for them.
  maps(line("5000", "6000", "/later"));
  stat(28, 0x7fff90000000);
  EXPECT_EQ(modules(2, {0x5800, 0x1800}), (Words{"", "/after"}));
  // Without permission to compare them, they count as the same.
  stat(28, 0);
  EXPECT_EQ(module(0x5800, 2), "/later");
}

TEST_F(Images, ChildrenThatAreGoneHaveTheirParents) {
  remember(1);
  remember(2, line("1000", "2000", "/b"));
  user.remember(50, 42, 1);
  EXPECT_EQ(module(0x1800, 1, 50), "/a");
  EXPECT_EQ(module(0x1800, 2, 50), "") << "it was not remembered";
  user.remember(50, 42, 2);
  EXPECT_EQ(module(0x1800, 2, 50), "/b");
  EXPECT_EQ(module(0x1800, 1, 50), "/a");
  EXPECT_EQ(module(0x1800, 1, 51), "") << "no parent";
  user.remember(52, 0, 1);
  EXPECT_EQ(module(0x1800, 1, 52), "");
  // Not of the image that the parent runs since.
  user.remember(53, 42, 9);
  EXPECT_EQ(module(0x1800, 9, 53), "");
}

TEST_F(Images, ParentsMayBeKnownLater) {
  fs::rename(process.scratch().in("42"), process.scratch().in("later"));
  user.remember(50, 42, 1);
  user.remember(60, 50, 1);  // a child of the child
  EXPECT_EQ(module(0x1800, 1, 60), "");
  fs::rename(process.scratch().in("later"), process.scratch().in("42"));
  remember(1);
  EXPECT_EQ(module(0x1800, 1, 60), "/a");
  EXPECT_EQ(module(0x1800, 1, 50), "/a");
}

TEST_F(Images, ProcessesThatAreEachOthersChildren) {
  maps("");
  user.remember(50, 51, 1);
  user.remember(51, 50, 1);
  user.remember(52, 52, 1);
  for (const pid_t pid : {50, 51, 52}) EXPECT_EQ(module(0x1800, 1, pid), "");
}

TEST_F(Images, TheLeastRecentlyUsedGoFirst) {
  maps(line("1000", "2000", "/1"));
  user = process.symbols({.max_processes = 3});
  const auto keep = [&](std::uint32_t image) {
    remember(image, line("1000", "2000", "/" + std::to_string(image)));
  };
  for (const std::uint32_t image : {1, 2, 3}) keep(image);
  EXPECT_EQ(module(0x1800, 1), "/1");  // 2 is the oldest
  keep(4);
  EXPECT_EQ(module(0x1800, 2), "");
  for (const std::uint32_t image : {1, 3, 4})
    EXPECT_EQ(module(0x1800, image), "/" + std::to_string(image));
}

TEST_F(Images, AllAreForgottenTogether) {
  for (const std::uint32_t image : {1, 2, 3}) remember(image);
  user.forget(42);
  fs::remove(process.scratch().in("42/maps"));
  for (const std::uint32_t image : {1, 2, 3}) EXPECT_EQ(module(0x1800, image), "");
}

TEST_F(Images, ARealProcessAndItsFiles) {
  RunningCopy copy;
  UserSymbols own;
  for (const std::uint32_t image : {1, 2}) own.remember(copy.pid, 0, image);
  for (const std::uint32_t image : {1, 2})
    EXPECT_EQ(own.find(copy.pid, copy.child.address(), true, image).name, kName);
  EXPECT_EQ(own.find(copy.pid, copy.child.address(), true, 3).module, "");
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
