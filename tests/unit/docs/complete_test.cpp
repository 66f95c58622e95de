// Candidates for the command line; untrusted text must be harmless in a shell.
#include "docs/complete.hpp"

#include <sys/prctl.h>

#include "all_tools.hpp"
#include "cli/parser.hpp"
#include "docs/commands.hpp"
#include "docs/completion_scripts.hpp"
#include "kernel/kernel.hpp"

namespace coretap {
namespace {

WordSet offered(const Words& words, const char* linked = nullptr) {
  WordSet all;
  for (auto& c : complete(linked ? find_tool(linked) : nullptr, words).candidates)
    EXPECT_TRUE(all.insert(c.word).second) << c.word << " twice";
  return all;
}

/// Each "WORDS => CANDIDATES": exactly these, or with + before one at least this, with ! not this.
void expect_offered(std::initializer_list<std::string_view> cases) {
  for (auto each : cases) {
    auto arrow = each.find(" => ");
    Words typed;
    std::istringstream line(std::string(each.substr(0, arrow)) + ' ');
    for (std::string word; std::getline(line, word, ' ');) typed.push_back(word);
    auto all = offered(typed);
    WordSet only;
    for (auto& word : words_of(std::string(each.substr(arrow + 4))))
      if (word[0] == '+' || word[0] == '!')
        EXPECT_EQ(all.contains(word.substr(1)), word[0] == '+') << each;
      else
        only.insert(word);
    if (!only.empty() || arrow + 4 == each.size()) {
      EXPECT_EQ(all, only) << each;
    }
  }
}

TEST(Complete, CommandsAndTools) {
  auto all = offered({""});
  for (auto& entry : registry()) EXPECT_TRUE(all.contains(std::string(entry.name)));
  for (auto& command : commands()) EXPECT_TRUE(all.contains(std::string(command.name)));
  EXPECT_TRUE(all.contains("--version"));
  EXPECT_FALSE(all.contains(kCompleteCommand));
  expect_offered({"runq => runqlat runqlen runqslower", "no-such => ", "no-such  => ",
                  "completion  => bash fish zsh",
                  // One argument is enough.
                  "completion bash  => ", "help runq => +runqlat", "help do => +doctor",
                  "doctor runqlat biol => +biolatency", "doctor do => !doctor",
                  "man outp => output", "list -- => --help --json"});
  for (auto& c : complete(nullptr, {"runqla"}).candidates) EXPECT_TRUE(says(c.doc, "latency"));
}

TEST(Complete, OptionsOfATool) {
  EXPECT_EQ(offered({"--tim"}, "runqlat"), WordSet{"--timestamp"});
  expect_offered({"runqlat --tim => --timestamp", "runqlat - => +-T +--timestamp",
                  "runqlat -- => !-T",
                  // Given options are not offered again, unless they accumulate.
                  "runqlat -T -- => !--timestamp", "runqlat --timestamp -- => !--timestamp",
                  "runqlat --times -- => !--timestamp", "runqlat -mT -- => !--timestamp",
                  "runqlat -p1 -- => +--pid", "runqlat --pid=1 -- => +--pid",
                  "runqlat -m --cgroup x -- => !--cgroup",
                  // Nor options that conflict with a given one.
                  "runqlat --json -- => !--csv", "offcputime -U -- => !--kernel-stacks-only",
                  "offcputime -- => +--kernel-stacks-only",
                  // Nor options without effect beside a given one, or without it.
                  "vmscan -- => +--extended", "vmscan -d -- => !--extended",
                  "drsnoop --perf => !--perf-max-stack-depth",
                  "drsnoop -K --perf => +--perf-max-stack-depth"});
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
  expect_offered({"profile --unwind  => auto fp off", "profile --unwind=f => --unwind=fp",
                  "opensnoop -f O_WR => O_WRONLY", "opensnoop -fO_WR => -fO_WRONLY",
                  "opensnoop -xfO_WR => -xfO_WRONLY", "traceloop --dump-signal  => USR1 USR2",
                  "traceloop --trigger SIGSE => +SIGSEGV", "syscount -e ENOE => +ENOENT",
                  // Lists.
                  "syscount --syscall openat,readl => +openat,readlink",
                  "syscount --syscall read,rea => !read,read",
                  "syscount --syscall=openat,readl => +--syscall=openat,readlink",
                  // Keys of the table; total_ns only with --latency.
                  "syscount --sort  => +count !total_ns", "syscount -L --sort  => +total_ns"});
  // The parser accepts each offered value.
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

TEST(Complete, WhatTheShellCompletes) {
  for (auto& [words, shell] : {std::pair{Words{"offcputime", "--svg", "x"}, Completions::files},
                               {{"offcputime", "--svg=x"}, Completions::files},
                               {{"runqlat", "1", ""}, Completions::nothing},
                               {{"link", ""}, Completions::directories},
                               {{"link", "--prefix", ""}, Completions::nothing}})
    EXPECT_EQ(complete(nullptr, words).shell, shell) << words.back();
  auto command = complete(nullptr, {"runqlat", "-p", "1", "--", "ls", "-"});
  EXPECT_EQ(command.shell, Completions::command);
  EXPECT_TRUE(command.candidates.empty()) << "options of a command are its own";
  EXPECT_EQ(complete(find_tool("runqlat"), {"--", ""}).command_at, 1u);
  EXPECT_EQ(printed(command), ":command 4\n");
  EXPECT_EQ(printed({{{"a", "b\tc\n\x1b[1m"}, {"d"}}, Completions::files}),
            "a\tb\\x09c\\x0a\\x1b[1m\nd\n:files\n");
}

/// Runs while another process with this name exists.
template <class Look>
void beside(const char* name, Look look) {
  Pipe ready;
  auto pid = fork();
  ASSERT_GE(pid, 0);
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    [[maybe_unused]] auto n = write(ready.writer, "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  EXPECT_EQ(read(ready.reader, &byte, 1), 1);
  look(pid);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
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
    EXPECT_TRUE(says(text, fmt::format("{}\ta\\x09b\\x0a\\x1b[31m\\xff\n", pid)));
    // Escaped it would match no task, and unescaped it could be more than one word.
    for (auto& word : offered({"runqlat", "--comm", "a"}))
      EXPECT_TRUE(std::none_of(word.begin(), word.end(), [](unsigned char c) { return c < ' '; }));
  });
}

TEST(Complete, MachineHas) {
  EXPECT_TRUE(offered({"runqlat", "-u", "roo"}).contains("root"));
  EXPECT_TRUE(offered({"profile", "-C", ""}).contains("0"));
  for (auto& name : values(Complete::disk, ""))
    EXPECT_TRUE(std::filesystem::exists("/sys/block/" + name.word)) << name.word;
  for (auto* option : {"--node", "--zone"}) EXPECT_FALSE(offered({"extfrag", option, ""}).empty());
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
