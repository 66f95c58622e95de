// Candidates for the command line, and that no text from outside can do harm in a shell.
#include "docs/complete.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "all_tools.hpp"
#include "cli/parser.hpp"
#include "docs/commands.hpp"
#include "docs/completion_scripts.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"

namespace coretap {
namespace {

WordSet offered(const Words& words, const char* linked = nullptr) {
  WordSet all;
  for (auto& c : complete(linked ? find_tool(linked) : nullptr, words).candidates)
    EXPECT_TRUE(all.insert(c.word).second) << c.word << " twice";
  return all;
}

TEST(Complete, CommandsAndTools) {
  auto all = offered({""});
  for (auto& entry : registry()) EXPECT_TRUE(all.contains(std::string(entry.name)));
  for (auto& command : commands()) EXPECT_TRUE(all.contains(std::string(command.name)));
  EXPECT_TRUE(all.contains("--version"));
  EXPECT_FALSE(all.contains(kCompleteCommand));
  EXPECT_EQ(offered({"runq"}), (WordSet{"runqlat", "runqlen", "runqslower"}));
  EXPECT_EQ(offered({"no-such"}), WordSet{});
  EXPECT_EQ(offered({"no-such", ""}), WordSet{});
  for (auto& c : complete(nullptr, {"runqla"}).candidates)
    EXPECT_NE(c.doc.find("latency"), c.doc.npos);
}

TEST(Complete, WordsOfCommands) {
  EXPECT_EQ(offered({"completion", ""}), (WordSet{"bash", "fish", "zsh"}));
  EXPECT_EQ(offered({"completion", "bash", ""}), WordSet{}) << "one is enough";
  EXPECT_TRUE(offered({"help", "runq"}).contains("runqlat"));
  EXPECT_TRUE(offered({"help", "do"}).contains("doctor"));
  EXPECT_TRUE(offered({"doctor", "runqlat", "biol"}).contains("biolatency"));
  EXPECT_FALSE(offered({"doctor", "do"}).contains("doctor"));
  EXPECT_EQ(offered({"man", "outp"}), WordSet{"output"});
  EXPECT_EQ(offered({"list", "--"}), (WordSet{"--help", "--json"}));
  EXPECT_EQ(complete(nullptr, {"link", ""}).shell, Completions::directories);
  EXPECT_EQ(complete(nullptr, {"link", "--prefix", ""}).shell, Completions::nothing);
}

TEST(Complete, OptionsOfATool) {
  EXPECT_EQ(offered({"runqlat", "--tim"}), WordSet{"--timestamp"});
  EXPECT_EQ(offered({"--tim"}, "runqlat"), WordSet{"--timestamp"});
  auto letters = offered({"runqlat", "-"});
  EXPECT_TRUE(letters.contains("-T") && letters.contains("--timestamp"));
  EXPECT_FALSE(offered({"runqlat", "--"}).contains("-T"));
  // Given ones are not offered again, unless they add up.
  for (auto* given : {"-T", "--timestamp", "--times", "-mT"})
    EXPECT_FALSE(offered({"runqlat", given, "--"}).contains("--timestamp")) << given;
  for (auto* given : {"-p1", "--pid=1"})
    EXPECT_TRUE(offered({"runqlat", given, "--"}).contains("--pid")) << given;
  EXPECT_FALSE(offered({"runqlat", "-m", "--cgroup", "x", "--"}).contains("--cgroup"));
  // Nor those that another one excludes.
  EXPECT_FALSE(offered({"runqlat", "--json", "--"}).contains("--csv"));
  EXPECT_FALSE(offered({"offcputime", "-U", "--"}).contains("--kernel-stacks-only"));
  EXPECT_TRUE(offered({"offcputime", "--"}).contains("--kernel-stacks-only"));
  // Nor those that say nothing beside another one, or without it.
  EXPECT_TRUE(offered({"vmscan", "--"}).contains("--extended"));
  EXPECT_FALSE(offered({"vmscan", "-d", "--"}).contains("--extended"));
  EXPECT_FALSE(offered({"drsnoop", "--perf"}).contains("--perf-max-stack-depth"));
  EXPECT_TRUE(offered({"drsnoop", "-K", "--perf"}).contains("--perf-max-stack-depth"));
}

TEST(Complete, EveryOptionIsOfferedAndItsValueIsNoWord) {
  for (auto& tool : all_tools()) {
    auto all = offered({"--"}, tool.name.data());
    for (auto& o : all_options(tool)) {
      auto name = fmt::format("--{}", o.name);
      if (o.belongs_to.empty() || o.belongs_to.starts_with('!')) {
        EXPECT_TRUE(all.contains(name)) << tool.name << name;
      } else {
        auto first = o.belongs_to.substr(0, o.belongs_to.find('|'));
        Words words = {fmt::format("--{}", first)};
        for (auto& other : all_options(tool))
          if (other.name == first && !other.metavar.empty()) words.emplace_back("1");
        words.emplace_back("--");
        EXPECT_FALSE(all.contains(name)) << tool.name << name;
        EXPECT_TRUE(offered(words, tool.name.data()).contains(name)) << tool.name << name;
      }
      if (o.metavar.empty()) continue;
      // A value is never completed as an option.
      for (auto& word : offered({fmt::format("--{}", o.name), ""}, tool.name.data()))
        EXPECT_FALSE(word.starts_with('-')) << tool.name << " --" << o.name << ' ' << word;
    }
  }
}

TEST(Complete, ClosedListsOfValues) {
  EXPECT_EQ(offered({"profile", "--unwind", ""}), (WordSet{"auto", "fp", "off"}));
  EXPECT_EQ(offered({"profile", "--unwind=f"}), WordSet{"--unwind=fp"});
  EXPECT_EQ(offered({"opensnoop", "-f", "O_WR"}), WordSet{"O_WRONLY"});
  EXPECT_EQ(offered({"opensnoop", "-fO_WR"}), WordSet{"-fO_WRONLY"});
  EXPECT_EQ(offered({"opensnoop", "-xfO_WR"}), WordSet{"-xfO_WRONLY"});
  EXPECT_EQ(offered({"traceloop", "--dump-signal", ""}), (WordSet{"USR1", "USR2"}));
  EXPECT_TRUE(offered({"traceloop", "--trigger", "SIGSE"}).contains("SIGSEGV"));
  EXPECT_TRUE(offered({"syscount", "-e", "ENOE"}).contains("ENOENT"));
  // Each value that is offered is one that the parser takes.
  for (auto& tool : all_tools()) {
    for (auto& o : all_options(tool)) {
      if (!o.words) continue;
      for (auto& c : o.words()) {
        Config config;
        auto taken = o.apply(config, c.word);
        EXPECT_TRUE(taken) << tool.name << " --" << o.name << ' ' << c.word;
      }
    }
  }
}

TEST(Complete, Lists) {
  EXPECT_TRUE(offered({"syscount", "--syscall", "openat,readl"}).contains("openat,readlink"));
  EXPECT_FALSE(offered({"syscount", "--syscall", "read,rea"}).contains("read,read"));
  EXPECT_TRUE(
      offered({"syscount", "--syscall=openat,readl"}).contains("--syscall=openat,readlink"));
}

TEST(Complete, SortKeysAreThoseOfTheTable) {
  auto keys = offered({"syscount", "--sort", ""});
  EXPECT_TRUE(keys.contains("count"));
  EXPECT_FALSE(keys.contains("total_ns")) << "measured with --latency only";
  EXPECT_TRUE(offered({"syscount", "-L", "--sort", ""}).contains("total_ns"));
}

TEST(Complete, WhatTheShellCompletes) {
  EXPECT_EQ(complete(nullptr, {"offcputime", "--svg", "x"}).shell, Completions::files);
  EXPECT_EQ(complete(nullptr, {"offcputime", "--svg=x"}).shell, Completions::files);
  auto command = complete(nullptr, {"runqlat", "-p", "1", "--", "ls", "-"});
  EXPECT_EQ(command.shell, Completions::command);
  EXPECT_EQ(command.command_at, 4u);
  EXPECT_TRUE(command.candidates.empty()) << "options of a command are its own";
  EXPECT_EQ(complete(find_tool("runqlat"), {"--", ""}).command_at, 1u);
  EXPECT_EQ(complete(nullptr, {"runqlat", "1", ""}).shell, Completions::nothing);
  EXPECT_EQ(printed(command), ":command 4\n");
  EXPECT_EQ(printed({{{"a", "b\tc\n\x1b[1m"}, {"d"}}, Completions::files}),
            "a\tb\\x09c\\x0a\\x1b[1m\nd\n:files\n");
}

/// Runs while another process of this name does.
template <class Look>
void beside(const char* name, Look look) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  auto pid = fork();
  ASSERT_GE(pid, 0);
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    [[maybe_unused]] auto n = write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  look(pid);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(Complete, Processes) {
  beside("name of mine", [](pid_t pid) {
    auto word = std::to_string(pid);
    auto all = values(Complete::pid, word);
    auto found = std::find_if(all.begin(), all.end(), [&](auto& c) { return c.word == word; });
    ASSERT_NE(found, all.end());
    EXPECT_EQ(found->doc, "name of mine");
    EXPECT_TRUE(offered({"runqlat", "-p", word}).contains(word));
    EXPECT_TRUE(offered({"runqlat", "-p", "1," + word}).contains("1," + word));
    EXPECT_TRUE(offered({"runqlat", "--comm", "name"}).contains("name of mine"));
  });
}

TEST(Complete, HostileNames) {
  beside("a\tb\n\x1b[31m\xff", [](pid_t pid) {
    auto text = printed(complete(nullptr, {"runqlat", "-p", std::to_string(pid)}));
    EXPECT_NE(text.find(fmt::format("{}\ta\\x09b\\x0a\\x1b[31m\\xff\n", pid)), text.npos) << text;
    // Altered it would match no task, and as it is it could be more than a word.
    for (auto& word : offered({"runqlat", "--comm", "a"}))
      EXPECT_TRUE(std::none_of(word.begin(), word.end(), [](unsigned char c) { return c < ' '; }));
  });
}

TEST(Complete, MachineHas) {
  EXPECT_TRUE(offered({"runqlat", "-u", "roo"}).contains("root"));
  EXPECT_TRUE(offered({"profile", "-C", ""}).contains("0"));
  for (auto& name : values(Complete::disk, ""))
    EXPECT_TRUE(std::filesystem::exists("/sys/block/" + name.word)) << name.word;
  EXPECT_FALSE(values(Complete::node, "").empty());
  EXPECT_FALSE(values(Complete::zone, "").empty());
}

TEST(Complete, KernelFunctionsAndTracepointsAreFoundSoon) {
  auto begun = std::chrono::steady_clock::now();
  auto functions = values(Complete::function, "vfs_rea");
  auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_TRUE(std::any_of(functions.begin(), functions.end(),
                          [](auto& c) { return c.word == "vfs_read"; }));
  EXPECT_LT(took, std::chrono::seconds(2)) << "a person waits";
  EXPECT_EQ(values(Complete::function, "").size(), 500u);
  EXPECT_TRUE(values(Complete::function, "no such function").empty());
  if (!tracefs()) GTEST_SKIP() << tracefs().error().why;
  auto tracepoints = values(Complete::tracepoint, "sched:sched_swi");
  ASSERT_EQ(tracepoints.size(), 1u);
  EXPECT_EQ(tracepoints[0].word, "sched:sched_switch");
}

TEST(Complete, CgroupsByTheirPaths) {
  auto mount = cgroup2_mount();
  if (!mount) GTEST_SKIP() << mount.error().why;
  auto name = fmt::format("coretap-test-{}", getpid());
  auto id = std::string(64, 'a');
  auto top = *mount + '/' + name, container = top + "/docker-" + id + ".scope";
  if (mkdir(top.c_str(), 0755) != 0 || mkdir(container.c_str(), 0755) != 0) {
    rmdir(top.c_str());
    GTEST_SKIP() << "cannot create cgroups here";
  }
  auto below = name + "/docker-" + id + ".scope";
  auto all = complete(nullptr, {"traceloop", name}).candidates;
  auto absolute = offered({"runqlat", "-c", top + "/d"});
  rmdir(container.c_str());
  rmdir(top.c_str());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].word, name);
  EXPECT_EQ(all[1].word, below);
  EXPECT_EQ(all[1].doc, "container aaaaaaaaaaaa (docker)");
  EXPECT_EQ(absolute, WordSet{container});
}

TEST(Complete, ScriptsAreThoseOfTheTree) {
  for (auto& shell : completion_shells()) {
    auto text = places::file_text(places::source_dir() + "/completion/coretap." + shell.word);
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(completion_script(shell.word), text);
  }
  EXPECT_EQ(completion_script("sh"), "");
}

}  // namespace
}  // namespace coretap
