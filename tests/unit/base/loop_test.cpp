#include "base/loop.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "expect.hpp"

namespace coretap {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Pipe {
  int reader = -1, writer = -1;
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) == 0) reader = fds[0], writer = fds[1];
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  void close_reader() { shut(reader); }
  void close_writer() { shut(writer); }
  static void shut(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

/// Signals are the whole process': such tests run in a child, which exits with 0 if all is well.
template <class Body>
int in_child(Body body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Loop, OnceFiresOnceAndNotEarly) {
  Loop loop;
  ASSERT_TRUE(loop.open());
  int fired = 0;
  auto start = Clock::now();
  loop.once(0.02, [&] { fired++; });
  loop.once(0.1, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(fired, 1);
  EXPECT_GE(seconds_since(start), 0.1);
  EXPECT_EQ(loop.signal(), 0);
}

// Work of its own must not move the following ones. A timer that began again after each would be
// late by all of it, on any machine; on a busy one it may take several rounds to see that it is
// not.
TEST(Loop, EveryRepeatsWithoutDrift) {
  constexpr double kPeriod = 0.02, kWork = 0.015;
  constexpr int kTimes = 10;
  constexpr double kDrifting = kTimes * kPeriod + (kTimes - 1) * kWork;
  double took = kDrifting;
  for (int round = 0; round < 50 && took >= kDrifting; round++) {
    Loop loop;
    ASSERT_TRUE(loop.open());
    int fired = 0;
    auto start = Clock::now();
    loop.every(kPeriod, [&] {
      if (++fired == kTimes) return loop.stop();
      usleep(static_cast<useconds_t>(kWork * 1e6));
    });
    loop.run();
    took = seconds_since(start);
    ASSERT_EQ(fired, kTimes);
    EXPECT_GE(took, kTimes * kPeriod);
  }
  EXPECT_LT(took, kDrifting);
}

TEST(Loop, TimersThatWereMissedCountOnce) {
  Loop loop;
  ASSERT_TRUE(loop.open());
  int fired = 0;
  loop.every(0.01, [&] { fired++; });
  loop.once(0.015, [] { usleep(200'000); });
  loop.once(0.03, [&] { loop.stop(); });
  loop.run();
  EXPECT_LT(fired, 10) << "no burst of stale reports";
}

TEST(Loop, TheShortestTimeStillFires) {
  Loop loop;
  ASSERT_TRUE(loop.open());
  bool fired = false;
  loop.once(1e-12, [&] {
    fired = true;
    loop.stop();
  });
  loop.once(5, [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(fired);
}

TEST(Loop, TimersMayBeMadeWhileItRuns) {
  Loop loop;
  ASSERT_TRUE(loop.open());
  int depth = 0;
  std::function<void()> again = [&] {
    if (++depth < 20)
      loop.once(0.001, again);
    else
      loop.stop();
  };
  loop.once(0.001, again);
  loop.run();
  EXPECT_EQ(depth, 20);
}

TEST(Loop, StopEndsItAtOnce) {
  Loop loop;
  ASSERT_TRUE(loop.open());
  int fired = 0;
  // Both are ready in the same round.
  loop.once(0.01, [&] { fired++, loop.stop(); });
  loop.once(0.01, [&] { fired++, loop.stop(); });
  usleep(20'000);
  loop.run();
  EXPECT_EQ(fired, 1);
  loop.run();
  EXPECT_EQ(fired, 1) << "stays stopped";
}

TEST(Loop, DescriptorsThatCanBeRead) {
  Loop loop;
  Pipe pipe;
  ASSERT_TRUE(loop.open());
  std::string got;
  loop.watch(pipe.reader, EPOLLIN, [&] {
    char c = 0;
    if (read(pipe.reader, &c, 1) == 1) got += c;
    if (got.size() == 3) loop.stop();
  });
  ASSERT_EQ(write(pipe.writer, "abc", 3), 3);
  loop.run();
  EXPECT_EQ(got, "abc");
}

// The reader of our output has gone although there was nothing to write.
TEST(Loop, HangUpOfAReader) {
  Loop loop;
  Pipe pipe;
  ASSERT_TRUE(loop.open());
  bool gone = false;
  loop.watch(pipe.writer, 0, [&] {
    gone = true;
    loop.stop();
  });
  loop.once(0.02, [&] {
    EXPECT_FALSE(gone);
    pipe.close_reader();
  });
  loop.once(10, [&] { loop.stop(); });
  auto start = Clock::now();
  loop.run();
  EXPECT_TRUE(gone);
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Loop, HangUpOfAWriter) {
  Loop loop;
  Pipe pipe;
  ASSERT_TRUE(loop.open());
  bool ended = false;
  loop.watch(pipe.reader, EPOLLIN, [&] {
    char c = 0;
    ended = read(pipe.reader, &c, 1) == 0;
    loop.stop();
  });
  pipe.close_writer();
  loop.run();
  EXPECT_TRUE(ended);
}

TEST(Loop, FilesAndNoDescriptorsAreNoTrouble) {
  Loop loop;
  ASSERT_TRUE(loop.open());
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  loop.watch(file, 0, [] { FAIL() << "a file is always ready: nothing to wait for"; });
  loop.watch(-1, 0, [] { FAIL(); });
  loop.once(0.01, [&] { loop.stop(); });
  loop.run();
  close(file);
}

TEST(Loop, LeavesWatchedDescriptorsOpen) {
  Pipe pipe;
  {
    Loop loop;
    ASSERT_TRUE(loop.open());
    loop.watch(pipe.reader, EPOLLIN, [] {});
    loop.once(1, [] {});
  }
  EXPECT_NE(fcntl(pipe.reader, F_GETFD), -1);
}

TEST(Loop, ClosesItsOwn) {
  int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(before);
  for (int i = 0; i < 10; i++) {
    Loop loop;
    ASSERT_TRUE(loop.open());
    loop.every(1, [] {});
    loop.once(1, [] {});
  }
  int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  EXPECT_EQ(before, after);
}

TEST(Signals, EachThatAsksToEndEndsTheLoop) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    EXPECT_EQ(in_child([signal] {
                ::signal(signal, SIG_DFL);  // what runs the tests may ignore it
                block_signals();
                Loop loop;
                if (!loop.open()) return 1;
                loop.once(0.01, [signal] { raise(signal); });
                loop.once(10, [&] { loop.stop(); });
                loop.run();
                return loop.signal() == signal ? 0 : 2;
              }),
              0)
        << signal;
}

TEST(Signals, OneThatWasIgnoredAtStartStaysIgnored) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    EXPECT_EQ(in_child([signal] {
                ::signal(signal, SIG_IGN);
                block_signals();
                Loop loop;
                if (!loop.open()) return 1;
                loop.once(0.01, [signal] { raise(signal); });
                loop.once(0.1, [&] { loop.stop(); });
                loop.run();
                let_signals_kill();
                raise(signal);
                return loop.signal() == 0 ? 0 : 2;
              }),
              0)
        << signal;
}

TEST(Signals, BeforeTheLoopIsThereIsNotForgotten) {
  EXPECT_EQ(in_child([] {
              block_signals();
              raise(SIGTERM);
              Loop loop;
              if (!loop.open()) return 1;
              loop.once(10, [&] { loop.stop(); });
              loop.run();
              return loop.signal() == SIGTERM ? 0 : 2;
            }),
            0);
}

// A write to a reader that has gone must fail, not kill.
TEST(Signals, BrokenPipesAreErrors) {
  EXPECT_EQ(in_child([] {
              block_signals();
              Pipe pipe;
              pipe.close_reader();
              return write(pipe.writer, "x", 1) < 0 && errno == EPIPE ? 0 : 1;
            }),
            0);
}

TEST(Signals, ChildrenGetThemBack) {
  EXPECT_EQ(in_child([] {
              block_signals();
              unblock_signals();
              raise(SIGTERM);
              return 0;
            }),
            1000 + SIGTERM);
  EXPECT_EQ(in_child([] {
              block_signal(SIGUSR1);
              unblock_signals();
              raise(SIGUSR1);
              return 0;
            }),
            1000 + SIGUSR1);
  // One that was blocked before stays so.
  EXPECT_EQ(in_child([] {
              sigset_t before;
              sigemptyset(&before);
              sigaddset(&before, SIGUSR1);
              sigprocmask(SIG_BLOCK, &before, nullptr);
              block_signal(SIGUSR1);
              unblock_signals();
              raise(SIGUSR1);
              return 7;
            }),
            7);
  EXPECT_EQ(in_child([] {
              block_signals();
              unblock_signals();
              Pipe pipe;
              pipe.close_reader();
              (void)!write(pipe.writer, "x", 1);
              return 0;
            }),
            1000 + SIGPIPE);
}

}  // namespace
}  // namespace coretap
