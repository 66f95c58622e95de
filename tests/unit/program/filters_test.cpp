#include "program/filters.hpp"
#include "run/command.hpp"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/loop.hpp"
#include "program/session.hpp"

namespace coretap {
namespace {

bool ends(int pidfd, int milliseconds) {
  pollfd p{pidfd, POLLIN, 0};
  return poll(&p, 1, milliseconds) == 1 && p.revents & POLLIN;
}

/// Exit status as Command tells it, after the end.
int run(const std::vector<std::string>& words) {
  Command command;
  if (!command.prepare(words) || !command.start()) return -2;
  if (!ends(command.pidfd(), 20'000)) return -3;
  return command.status();
}

class Scratch {
 public:
  Scratch() {
    auto name = (std::filesystem::temp_directory_path() / "coretap-command-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Command, WaitsUntilItIsLetGo) {
  Scratch scratch;
  Command command;
  ASSERT_TRUE(command.prepare({"touch", scratch.file("ran")}));
  EXPECT_GT(command.pid(), 0);
  EXPECT_EQ(kill(command.pid(), 0), 0);
  EXPECT_FALSE(ends(command.pidfd(), 50));
  EXPECT_FALSE(std::filesystem::exists(scratch.file("ran")));
  EXPECT_EQ(command.status(), -1);
  ASSERT_TRUE(command.start());
  EXPECT_TRUE(ends(command.pidfd(), 20'000));
  EXPECT_TRUE(std::filesystem::exists(scratch.file("ran")));
  EXPECT_EQ(command.status(), 0);
}

TEST(Command, StatusAsAShellTellsIt) {
  EXPECT_EQ(run({"true"}), 0);
  EXPECT_EQ(run({"false"}), 1);
  EXPECT_EQ(run({"sh", "-c", "exit 42"}), 42);
  EXPECT_EQ(run({"sh", "-c", "exit 255"}), 255);
  EXPECT_EQ(run({"sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
}

TEST(Command, StatusStaysAfterTheEnd) {
  Command command;
  ASSERT_TRUE(command.prepare({"sh", "-c", "exit 3"}));
  ASSERT_TRUE(command.start());
  ASSERT_TRUE(ends(command.pidfd(), 20'000));
  EXPECT_EQ(command.status(), 3);
  EXPECT_EQ(command.status(), 3);
}

TEST(Command, RunningHasNoStatus) {
  Command command;
  ASSERT_TRUE(command.prepare({"sleep", "60"}));
  ASSERT_TRUE(command.start());
  EXPECT_FALSE(ends(command.pidfd(), 20));
  EXPECT_EQ(command.status(), -1);
  kill(command.pid(), SIGKILL);
  EXPECT_TRUE(ends(command.pidfd(), 20'000));
  EXPECT_EQ(command.status(), 128 + SIGKILL);
}

TEST(Command, ArgumentsArriveUnchanged) {
  Scratch scratch;
  EXPECT_EQ(run({"sh", "-c", "printf '%s|' \"$@\" >" + scratch.file("words"), "sh", "", "a b",
                 "$HOME", "*", "-m", "--", "\n", "\xff"}),
            0);
  EXPECT_EQ(contents(scratch.file("words")), "|a b|$HOME|*|-m|--|\n|\xff|");
}

TEST(Command, WhatCannotRunIsAnError) {
  Scratch scratch;
  std::ofstream(scratch.file("plain")) << "text";
  for (auto& word : {scratch.file("none"), std::string("no-such-command-of-coretap"), std::string(),
                     scratch.file(""), std::string("/")}) {
    Command command;
    ASSERT_TRUE(command.prepare({word}));
    auto started = command.start();
    ASSERT_FALSE(started) << word;
    EXPECT_FALSE(started.error().why.empty());
    EXPECT_FALSE(started.error().hint.empty());
    EXPECT_EQ(waitpid(command.pid(), nullptr, WNOHANG), -1) << "no zombie stays";
  }
  Command command;
  ASSERT_TRUE(command.prepare({scratch.file("plain")}));
  auto started = command.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().why, strerror(EACCES));
}

// Its name is what the user typed; the message must let them see it.
TEST(Command, ErrorNamesTheCommand) {
  Command command;
  ASSERT_TRUE(command.prepare({"no-such-command-of-coretap"}));
  auto started = command.start();
  ASSERT_FALSE(started);
  auto& e = started.error();
  EXPECT_NE((e.what + e.why).find("no-such-command-of-coretap"), std::string::npos)
      << e.what << ": " << e.why;
}

TEST(Command, NotStartedIsKilled) {
  Scratch scratch;
  int watcher = -1;
  pid_t pid = -1;
  {
    Command command;
    ASSERT_TRUE(command.prepare({"touch", scratch.file("ran")}));
    pid = command.pid();
    watcher = fcntl(command.pidfd(), F_DUPFD_CLOEXEC, 0);
  }
  EXPECT_TRUE(ends(watcher, 20'000));
  close(watcher);
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1) << "and waited for";
  EXPECT_FALSE(std::filesystem::exists(scratch.file("ran")));
}

TEST(Command, StartedOutlivesItsObject) {
  int watcher = -1;
  pid_t pid = -1;
  {
    Command command;
    ASSERT_TRUE(command.prepare({"sleep", "60"}));
    ASSERT_TRUE(command.start());
    pid = command.pid();
    watcher = fcntl(command.pidfd(), F_DUPFD_CLOEXEC, 0);
  }
  EXPECT_FALSE(ends(watcher, 50));
  close(watcher);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// Whoever waits for the tool must not wait for a forgotten child: it ends when we do.
TEST(Command, EndsWithUsIfNeverLetGo) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  pid_t tool = fork();
  if (tool == 0) {
    Command command;
    (void)command.prepare({"sleep", "60"});
    raise(SIGKILL);
  }
  close(fds[1]);
  waitpid(tool, nullptr, 0);
  pollfd p{fds[0], POLLIN, 0};
  // The pipe was inherited by both: it hangs up when the last of them is gone.
  EXPECT_EQ(poll(&p, 1, 20'000), 1);
  EXPECT_TRUE(p.revents & POLLHUP);
  close(fds[0]);
}

TEST(Command, RunsWithOrdinarySignals) {
  Scratch scratch;
  pid_t child = fork();
  if (child == 0) {
    // Whoever runs this test may ignore some (nohup does); a command keeps that.
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_DFL);
    // As the tools do: the command must not inherit this.
    block_signals();
    _exit(
        run({"sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status >" + scratch.file("signals")}));
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  std::ifstream in(scratch.file("signals"));
  std::string name;
  std::uint64_t mask = 0;
  int lines = 0;
  for (; in >> name >> std::hex >> mask; lines++)
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
      EXPECT_FALSE(mask >> (signal - 1) & 1) << name << " " << signal;
  EXPECT_EQ(lines, 2);
}

TEST(Command, InheritsNoDescriptorOfOurs) {
  Scratch scratch;
  auto list = [&](const char* name) { return "ls /proc/self/fd >" + scratch.file(name); };
  ASSERT_EQ(system(list("expected").c_str()), 0);
  Command another;
  ASSERT_TRUE(another.prepare({"true"}));
  ASSERT_EQ(run({"sh", "-c", list("fds")}), 0);
  EXPECT_EQ(contents(scratch.file("fds")), contents(scratch.file("expected")));
}

TEST(Command, DescriptorsAreGivenBack) {
  int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(before);
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(run({"true"}), 0);
    Command never;
    EXPECT_TRUE(never.prepare({"true"}));
    Command wrong;
    EXPECT_TRUE(wrong.prepare({"no-such-command-of-coretap"}));
    EXPECT_FALSE(wrong.start());
  }
  int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  EXPECT_EQ(before, after);
}

/// A session with an opened, never loaded object: as far as one gets without rights.
struct Opened {
  Tool tool;
  Config config;
  Session session{tool, config};

  explicit Opened(std::string_view name) : tool(build(*find_tool(name))) {
    libbpf_set_print(nullptr);
    auto bytes = tool.object.bytes();
    session.object.reset(bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
  }
  /// The filter as it stands in the program's read-only data.
  task_filter filter() {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, session.object.get()) {
      if (!std::string_view(bpf_map__name(map)).ends_with(".rodata")) continue;
      std::size_t size = 0;
      auto* data = static_cast<const char*>(bpf_map__initial_value(map, &size));
      // Where it lies is found by what was put into it.
      task_filter f{};
      for (std::size_t at = 0; at + sizeof f <= size; at += 8) {
        memcpy(&f, data + at, sizeof f);
        if (f.on == 1 && f.by_tgid <= 1 && f.follow <= 1 && !strcmp(f.comm, "filters_test"))
          return f;
      }
    }
    return {};
  }
};

TEST(Filters, GoIntoTheProgram) {
  Opened o("runqlat");
  ASSERT_TRUE(o.session.object);
  o.config.comm = "filters_test";
  o.config.uid = 1000;
  o.config.pids = {static_cast<std::uint32_t>(getpid())};
  o.config.cgroup = "77";
  auto r = configure_filters(o.session, 0);
  ASSERT_TRUE(r) << r.error().what << ": " << r.error().why;
  auto f = o.filter();
  EXPECT_EQ(f.on, 1);
  EXPECT_EQ(f.by_tgid, 1);
  EXPECT_EQ(f.by_tid, 0);
  EXPECT_EQ(f.by_uid, 1);
  EXPECT_EQ(f.uid, 1000u);
  EXPECT_EQ(f.by_comm, 1);
  EXPECT_EQ(f.by_cgroup, 1);
  EXPECT_EQ(f.cgroup, 77u);
  EXPECT_EQ(f.follow, 0);
  EXPECT_EQ(bpf_map__max_entries(o.session.map("filter_tgids")), 1u);
}

TEST(Filters, FollowACommand) {
  Opened o("runqlat");
  ASSERT_TRUE(o.session.object);
  o.config.comm = "filters_test";
  auto r = configure_filters(o.session, getpid());
  ASSERT_TRUE(r) << r.error().what;
  auto f = o.filter();
  EXPECT_EQ(f.by_tgid, 1);
  EXPECT_EQ(f.follow, 1);
  EXPECT_GE(bpf_map__max_entries(o.session.map("filter_tgids")), 1024u) << "its children need room";
}

TEST(Filters, WhatMatchesNothingIsRefused) {
  pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  Opened pid("runqlat"), tid("runqlat"), cgroup("runqlat");
  pid.config.pids = {static_cast<std::uint32_t>(gone)};
  tid.config.tids = {static_cast<std::uint32_t>(gone)};
  cgroup.config.cgroup = "no/such/cgroup";
  for (auto* o : {&pid, &tid, &cgroup}) {
    auto r = configure_filters(o->session, 0);
    ASSERT_FALSE(r);
    EXPECT_FALSE(r.error().hint.empty()) << r.error().what;
  }
}

}  // namespace
}  // namespace coretap
