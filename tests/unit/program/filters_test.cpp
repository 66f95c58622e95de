#include "program/filters.hpp"
#include "expect.hpp"
#include "run/command.hpp"

#include <bpf/libbpf.h>
#include <poll.h>

#include "base/loop.hpp"
#include "kernel/kernel.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {
namespace {

bool ends(int pidfd, int milliseconds) {
  pollfd p{pidfd, POLLIN, 0};
  return poll(&p, 1, milliseconds) == 1 && p.revents & POLLIN;
}

/// Exit status reported by Command, after the end.
int run(const std::vector<std::string>& words) {
  Command command;
  if (!command.prepare(words) || !command.start()) return -2;
  if (!ends(command.pidfd(), 20'000)) return -3;
  EXPECT_EQ(command.status(), command.status()) << "it stays";
  return command.status();
}

TEST(Command, WaitsUntilItIsLetGo) {
  ScratchDirectory scratch;
  Command command;
  ASSERT_TRUE(command.prepare({"touch", scratch.in("ran")}));
  EXPECT_GT(command.pid(), 0);
  EXPECT_EQ(kill(command.pid(), 0), 0);
  EXPECT_FALSE(ends(command.pidfd(), 50));
  EXPECT_FALSE(fs::exists(scratch.in("ran")));
  EXPECT_EQ(command.status(), -1);
  ASSERT_TRUE(command.start());
  EXPECT_TRUE(ends(command.pidfd(), 20'000));
  EXPECT_TRUE(fs::exists(scratch.in("ran")));
  EXPECT_EQ(command.status(), 0);
}

TEST(Command, StatusAsAShellTellsIt) {
  EXPECT_EQ(run({"true"}), 0);
  EXPECT_EQ(run({"false"}), 1);
  EXPECT_EQ(run({"sh", "-c", "exit 255"}), 255);
  EXPECT_EQ(run({"sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
}

TEST(Command, ArgumentsArriveUnchanged) {
  ScratchDirectory scratch;
  EXPECT_EQ(0, run({"sh", "-c", "printf '%s|' \"$@\" >" + scratch.in("words"), "sh", "", "a b",
                    "$HOME", "*", "-m", "--", "\n", "\xff"}));
  EXPECT_EQ(places::file_text(scratch.in("words")), "|a b|$HOME|*|-m|--|\n|\xff|");
}

TEST(Command, WhatCannotRunIsRefusedAtOnce) {
  ScratchDirectory scratch;
  scratch.write("plain", "text");
  for (auto& [word, status] : {std::pair{scratch.in("none"), 127},
                               {scratch.in("plain") + "/below", 127},
                               {"no-such-command-of-coretap", 127},
                               {"", 127},
                               {scratch.in(""), 126},
                               {"/", 126},
                               {scratch.in("plain"), 126}}) {
    Command command;
    auto prepared = command.prepare({word});
    ASSERT_FALSE(prepared) << word;
    EXPECT_EQ(prepared.error().status, status) << word;
    EXPECT_FALSE((status == 127 ? prepared.error().hint : prepared.error().why).empty()) << word;
    EXPECT_EQ(command.pid(), -1) << "nothing was forked";
    // Its name is as typed by the user.
    EXPECT_NE(prepared.error().what.find("'" + word + "'"), std::string::npos);
  }
}

TEST(Command, IsLookedForInPath) {
  ScratchDirectory scratch;
  scratch.write("a/of-coretap", "text");
  std::string before = getenv("PATH");
  setenv("PATH", (scratch.in("none") + "::" + scratch.in("a")).c_str(), 1);
  Command command;
  auto prepared = command.prepare({"of-coretap"});
  EXPECT_TRUE(!prepared && prepared.error().status == 126) << "it is there, not to be executed";
  scratch.write("b/of-coretap", "#!/bin/sh\nexit 5\n");
  fs::permissions(scratch.in("b/of-coretap"), fs::perms::owner_all);
  setenv("PATH", (scratch.in("a") + ":" + scratch.in("b")).c_str(), 1);
  EXPECT_EQ(run({"of-coretap"}), 5) << "the next directory has one that can";
  setenv("PATH", before.c_str(), 1);
}

// Errors that only the kernel detects are reported when it is started.
TEST(Command, WhatTheKernelRefuses) {
  ScratchDirectory scratch;
  for (auto [name, text] :
       {std::pair{"script", "#!/no/such/interpreter\n"}, {"binary", "\177ELF, but not really"}}) {
    fs::permissions(scratch.write(name, text), fs::perms::owner_all);
    Command command;
    ASSERT_TRUE(command.prepare({scratch.in(name)}));
    auto started = command.start();
    if (started) {  // execvp() runs other files with the shell
      ASSERT_TRUE(ends(command.pidfd(), 20'000));
      EXPECT_GE(command.status(), 126) << name;
      continue;
    }
    EXPECT_GE(started.error().status, 126) << name;
    EXPECT_EQ(waitpid(command.pid(), nullptr, WNOHANG), -1) << "no zombie stays";
  }
}

TEST(Command, IsKilledWithItsObjectUnlessItWasStarted) {
  ScratchDirectory scratch;
  for (bool started : {false, true}) {
    int watcher = -1;
    pid_t pid = -1;
    {
      Command command;
      ASSERT_TRUE(command.prepare({"sh", "-c", "touch " + scratch.in("ran") + "; exec sleep 60"}));
      if (started) {
        ASSERT_TRUE(command.start());
        EXPECT_EQ(command.status(), -1) << "it runs";
      }
      pid = command.pid();
      watcher = fcntl(command.pidfd(), F_DUPFD_CLOEXEC, 0);
    }
    EXPECT_EQ(ends(watcher, started ? 50 : 20'000), !started);
    close(watcher);
    if (started) kill(pid, SIGKILL);
    EXPECT_EQ(waitpid(pid, nullptr, 0), started ? pid : -1) << "and waited for";
    EXPECT_TRUE(started || !fs::exists(scratch.in("ran")));
  }
}

// A process that waits for the tool must not wait for a forgotten child: it ends with us.
TEST(Command, EndsWithUsIfNeverLetGo) {
  Pipe pipe;  // inherited by both: it hangs up when the last of them has exited
  EXPECT_EQ(in_child([] {
              Command command;
              (void)command.prepare({"sleep", "60"});
              return raise(SIGKILL);
            }),
            1000 + SIGKILL);
  Pipe::shut(pipe.writer);
  pollfd p{pipe.reader, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 20'000), 1);
  EXPECT_TRUE(p.revents & POLLHUP);
}

TEST(Command, RunsWithOrdinarySignals) {
  ScratchDirectory scratch;
  EXPECT_EQ(0, in_child([&] {
              // The process that runs this test may ignore some (nohup does); a command keeps that.
              for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
                ::signal(signal, SIG_DFL);
              block_signals();  // as the tools do: the command must not inherit this
              return run({"sh", "-c",
                          "grep -E '^Sig(Blk|Ign)' /proc/self/status >" + scratch.in("signals")});
            }));
  std::ifstream in(scratch.in("signals"));
  std::string name;
  std::uint64_t mask = 0;
  int lines = 0;
  for (; in >> name >> std::hex >> mask; lines++)
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
      EXPECT_FALSE(mask >> (signal - 1) & 1) << name << " " << signal;
  EXPECT_EQ(lines, 2);
}

TEST(Command, InheritsNoDescriptorOfOurs) {
  ScratchDirectory scratch;
  auto list = [&](const char* name) { return "ls /proc/self/fd >" + scratch.in(name); };
  ASSERT_EQ(system(list("expected").c_str()), 0);
  Command another;
  ASSERT_TRUE(another.prepare({"true"}));
  ASSERT_EQ(run({"sh", "-c", list("fds")}), 0);
  EXPECT_EQ(places::file_text(scratch.in("fds")), places::file_text(scratch.in("expected")));
}

TEST(Command, DescriptorsAreGivenBack) {
  const int before = next_descriptor();
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(run({"true"}), 0);
    Command never;
    EXPECT_TRUE(never.prepare({"true"}));
    Command wrong;
    EXPECT_FALSE(wrong.prepare({"no-such-command-of-coretap"}));
  }
  EXPECT_EQ(before, next_descriptor());
}

/// A session with an opened, never loaded object: needs no capabilities.
struct Opened {
  Tool tool;
  Config config;
  Session session{tool, config};

  explicit Opened(std::string_view name) : tool(build(*find_tool(name))) {
    libbpf_set_print(nullptr);
    auto bytes = tool.object.bytes();
    session.object.reset(bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
  }
  /// A constant as it is in the program's read-only data.
  template <class T>
  T constant(std::string_view wanted) {
    T value{};
    each_constant(session, [&](std::string_view name, std::uint32_t offset, std::uint32_t size) {
      if (name != wanted || size != sizeof value) return;
      bpf_map* map = nullptr;
      bpf_object__for_each_map(map, session.object.get()) {
        if (!std::string_view(bpf_map__name(map)).ends_with(".rodata")) continue;
        std::size_t all = 0;
        auto* data = static_cast<const char*>(bpf_map__initial_value(map, &all));
        if (data && offset + size <= all) memcpy(&value, data + offset, size);
      }
    });
    return value;
  }
  task_filter filter() { return constant<task_filter>("filter"); }
};

TEST(Filters, GoIntoTheProgram) {
  Opened o("runqlat");
  ASSERT_TRUE(o.session.object);
  o.config.tasks.comms = {"one", "two"};
  o.config.tasks.uids = {1000, 1001, 1002};
  o.config.tasks.pids = {static_cast<std::uint32_t>(getpid())};
  auto r = configure_filters(o.session);
  ASSERT_TRUE(r) << r.error().what << ": " << r.error().why;
  auto f = o.filter();
  EXPECT_TRUE(f.on && f.by_tgid && f.by_uid && f.by_comm);
  EXPECT_FALSE(f.by_tid || f.by_name || f.by_cgroup || f.follow);
  EXPECT_EQ(bpf_map__max_entries(o.session.map(MapName("filter_tgids"))), 1u);
  EXPECT_EQ(bpf_map__max_entries(o.session.map(MapName("filter_uids"))), 3u);
  EXPECT_EQ(bpf_map__max_entries(o.session.map(MapName("filter_comms"))), 2u);
}

TEST(Filters, CgroupById) {
  auto mount = cgroup2_mount();
  if (!mount) GTEST_SKIP() << "no cgroup2 here";
  struct stat root {};
  ASSERT_EQ(stat(mount->c_str(), &root), 0);
  Opened o("runqlat");
  o.config.tasks.cgroup = std::to_string(root.st_ino);
  ASSERT_TRUE(configure_filters(o.session));
  EXPECT_EQ(o.filter().by_cgroup, 1);
  EXPECT_EQ(o.filter().cgroup, root.st_ino);
}

/// As name_has_part() of bpf/lib/core/filter.bpf.h does it.
bool found(const task_filter& f, const std::array<std::uint64_t, 256>& names,
           std::string_view comm) {
  std::uint64_t matched = 0;
  for (unsigned char byte : comm) {
    matched = (matched << 1 | f.name_first) & names[byte];
    if (matched & f.name_last) return true;
  }
  return false;
}

TEST(Filters, PartsOfNames) {
  Opened o("runqlat");
  o.config.tasks.names = {"abab", "k\xff", "z"};
  ASSERT_TRUE(configure_filters(o.session));
  auto f = o.filter();
  auto names = o.constant<std::array<std::uint64_t, 256>>("filter_names");
  EXPECT_EQ(f.on, 1);
  EXPECT_EQ(f.by_name, 1);
  for (auto* yes : {"abab", "xabab", "ababx", "aababab", "z", "xz", "k\xff",
                    "ak\xff"
                    "b"})
    EXPECT_TRUE(found(f, names, yes)) << yes;
  for (auto* no : {"", "aba", "abba", "k", "\xff", "ab", "abak"})
    EXPECT_FALSE(found(f, names, no)) << no;
}

TEST(Filters, FollowACommand) {
  Opened o("runqlat");
  ASSERT_TRUE(o.session.object);
  o.session.command = getpid();
  auto r = configure_filters(o.session);
  ASSERT_TRUE(r) << r.error().what;
  auto f = o.filter();
  EXPECT_EQ(f.by_tgid, 1);
  EXPECT_EQ(f.follow, 1);
  EXPECT_GE(bpf_map__max_entries(o.session.map(MapName("filter_tgids"))), 1024u)
      << "its children need room";
}

TEST(Filters, WhatMatchesNothingIsRefused) {
  pid_t gone = -1;
  in_child([] { return 0; }, &gone);
  auto dead = static_cast<std::uint32_t>(gone), self = static_cast<std::uint32_t>(getpid());
  Config::Tasks pid, tid, some;
  pid.pids = {dead};
  tid.tids = {dead, dead};
  for (auto* c : {&pid, &tid}) {
    auto r = find_tasks(*c);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().status, kUsage);
    EXPECT_NE(r.error().what.find(std::to_string(gone)), std::string::npos);
    EXPECT_FALSE(r.error().hint.empty()) << r.error().what;
  }
  some.pids = {dead, self};
  some.tids = {self, dead};
  auto notes = find_tasks(some);
  ASSERT_TRUE(notes) << notes.error().what;
  EXPECT_EQ(notes->size(), 2u);
  EXPECT_EQ(some.pids, std::vector{self}) << "another process may get the id";
  EXPECT_EQ(some.tids, std::vector{self});
  Config::Tasks none;
  ASSERT_TRUE(find_tasks(none));

  for (auto* bad : {"no/such/cgroup", "99999999999"}) {
    Opened o("runqlat");
    o.config.tasks.cgroup = bad;
    auto r = configure_filters(o.session);
    ASSERT_FALSE(r) << bad;
    EXPECT_FALSE(r.error().hint.empty()) << r.error().what;
  }
}

}  // namespace
}  // namespace coretap
