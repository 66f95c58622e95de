// Files with code: of a command to be started, of running processes.
#include "coretap/fd.hpp"
#include "expect.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/proc_maps.hpp"
#include "symbols/test_files.hpp"
#include "unwind/command_files.hpp"
#include "unwind/running_files.hpp"

namespace coretap::unwind {
namespace {

std::string interpreter(const std::string& path) {
  const Fd file = symbols::test::open_file(path);
  const auto elf = symbols::open_elf(file.get());
  return elf ? symbols::interpreter_of(elf.get()) : std::string();
}

/// Inodes, as paths may be links.
std::set<ino_t> inodes(const Words& paths) {
  std::set<ino_t> all;
  struct stat status;
  for (auto& path : paths)
    if (::stat(path.c_str(), &status) == 0) all.insert(status.st_ino);
  return all;
}

TEST(CommandFiles, InterpreterOfAProgram) {
  auto path = interpreter("/bin/sh");
  EXPECT_TRUE(path.starts_with("/lib")) << path;
  EXPECT_EQ(::access(path.c_str(), X_OK), 0);
  EXPECT_EQ(interpreter(path), "") << "it needs none itself";
  EXPECT_EQ(interpreter("/etc/passwd"), "");
}

TEST(CommandFiles, InterpreterOfAScript) {
  auto of = [](std::string text) {
    return interpreter_of_script(Image({text.data(), text.size()}));
  };
  EXPECT_EQ(of("#!/bin/sh\necho\n"), "/bin/sh");
  EXPECT_EQ(of("#! /usr/bin/env python3\n"), "/usr/bin/env");
  EXPECT_EQ(of("#!/bin/sh"), "/bin/sh");
  EXPECT_EQ(of("#!\n/bin/sh"), "");
  for (auto* none : {"#", "", "\177ELF"}) EXPECT_EQ(of(none), "") << none;
}

TEST(CommandFiles, ListedLibraries) {
  using Paths = Words;
  EXPECT_EQ(listed_libraries("\tlinux-vdso.so.1 (0x00007ffd)\n"
                             "\tlibc.so.6 => /lib/libc.so.6 (0x00007f00)\n"
                             "\tlibgone.so => not found\n"
                             "\t/lib64/ld-linux-x86-64.so.2 (0x00007f11)\n"
                             "\tliba.so => /a b (c)/liba.so (0x00007f22)\n"),
            (Paths{"/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/a b (c)/liba.so"}));
  EXPECT_EQ(listed_libraries("=> (0x1)\n => \n(0x\n\n=> /x"), Paths());
}

TEST(CommandFiles, ByTheirWholePaths) {
  ScratchDirectory directory;
  fs::create_symlink("/bin/sh", directory.path() + "/link");
  const auto relative = fs::relative(directory.path() + "/link").string();
  ASSERT_FALSE(relative.starts_with('/'));
  EXPECT_EQ(files_of_command(relative), files_of_command("/bin/sh"));
  EXPECT_EQ(files_of_command("/bin/sh").front(), fs::canonical("/bin/sh").string());
}

TEST(CommandFiles, ScriptsLeadToTheirInterpreters) {
  ScratchDirectory directory;
  auto script = directory.write("script", "#!/bin/sh\n");
  auto outer = directory.write("outer", "#!" + script + "\n");
  EXPECT_EQ(inodes(files_of_command(outer)), inodes(files_of_command("/bin/sh")));
  directory.write("script", "#!" + script + "\n");
  EXPECT_TRUE(files_of_command(script).empty()) << "a circle";
  EXPECT_TRUE(files_of_command(directory.path() + "/none").empty());
  EXPECT_TRUE(files_of_command("no-such-command-anywhere").empty());
}

using Clock = RunningFiles::Clock;
constexpr std::chrono::hours kLong{1};

class RunningFilesTest : public ::testing::Test {
 protected:
  void process(int pid, const std::string& maps) {
    scratch_.write(std::to_string(pid) + "/maps", maps);
  }
  static std::string code(const std::string& path, int inode) {
    return "1000-2000 r-xp 00000000 08:01 " + std::to_string(inode) + " " + path + "\n";
  }
  void SetUp() override {
    process(1, code("/once", 11));
    process(22, code("/often", 12) + "3000-4000 r-xp 00000000 00:00 0 [vdso]\n");
    process(333, code("/often", 12));
    process(4444, "1000-2000 rw-p 00000000 08:01 13 /data\n" + code("/often", 12));
    fs::create_directory(scratch_.path() + "/5x");
    fs::create_directory(scratch_.path() + "/66");  // has ended
  }

  ScratchDirectory scratch_;
};

TEST_F(RunningFilesTest, CodeOfMostProcessesFirstAndGoesOnWhereItStopped) {
  RunningFiles running(scratch_.path());
  Words known;
  auto know = [&](pid_t pid, const symbols::Mapping& m) {
    known.push_back(m.path);
    EXPECT_TRUE(m.path != "/once" || pid == 1);
    return true;
  };
  EXPECT_TRUE(running.go_on(Clock::now(), know)) << "no time";
  EXPECT_TRUE(known.empty());
  EXPECT_FALSE(running.go_on(Clock::now() + kLong, know));
  EXPECT_EQ(known, (Words{"/often", "/once"}));
  RunningFiles without_room(scratch_.path());
  known.clear();
  EXPECT_FALSE(without_room.go_on(
      Clock::now() + kLong, [&](pid_t pid, const symbols::Mapping& m) { return !know(pid, m); }));
  EXPECT_EQ(known, Words{"/often"});
}

}  // namespace
}  // namespace coretap::unwind
