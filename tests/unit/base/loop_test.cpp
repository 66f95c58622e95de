#include "base/loop.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include "expect.hpp"

namespace coretap {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class LoopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop.open()); }
  std::function<void()> stop() {
    return [this] { loop.stop(); };
  }

  Loop loop;
  Pipe pipe;
  int fired = 0;
  Clock::time_point start = Clock::now();
};

TEST_F(LoopTest, OnceFiresOnceAndNotEarly) {
  loop.once(0.02, [&] { fired++; });
  loop.once(0.1, stop());
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(fired, 1);
  EXPECT_GE(seconds_since(start), 0.1);
  EXPECT_EQ(loop.signal(), 0);
}

// The callback's run time must not delay later ones. A timer that restarts after each callback
// would be late by their sum, on any machine; a busy machine may need several rounds to pass.
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
    EXPECT_TRUE(loop.run());
    took = seconds_since(start);
    ASSERT_EQ(fired, kTimes);
    EXPECT_GE(took, kTimes * kPeriod);
  }
  EXPECT_LT(took, kDrifting);
}

TEST_F(LoopTest, TimersThatWereMissedCountOnce) {
  loop.every(0.01, [&] { fired++; });
  loop.once(0.015, [] { usleep(200'000); });
  loop.once(0.03, stop());
  EXPECT_TRUE(loop.run());
  EXPECT_LT(fired, 10) << "no burst of stale reports";
}

TEST_F(LoopTest, TheShortestTimeStillFires) {
  loop.once(1e-12, [&] { fired++, loop.stop(); });
  loop.once(5, stop());
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(fired, 1);
}

TEST_F(LoopTest, TimersMayBeMadeWhileItRuns) {
  std::function<void()> again = [&] { loop.once(0.001, ++fired < 20 ? again : stop()); };
  loop.once(0.001, again);
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(fired, 20);
}

TEST_F(LoopTest, StopEndsItAtOnce) {
  // Both are ready in the same round.
  for (int i = 0; i < 2; i++) loop.once(0.01, [&] { fired++, loop.stop(); });
  usleep(20'000);
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(fired, 1);
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(fired, 1) << "stays stopped";
}

TEST_F(LoopTest, DescriptorsThatCanBeRead) {
  std::string got;
  loop.watch(pipe.reader, EPOLLIN, [&] {
    char c = 0;
    if (read(pipe.reader, &c, 1) == 1) got += c;
    if (got.size() == 3) loop.stop();
  });
  ASSERT_EQ(write(pipe.writer, "abc", 3), 3);
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(got, "abc");
}

// The reader of the output has closed the pipe although there was nothing to write.
TEST_F(LoopTest, HangUpOfAReader) {
  loop.watch(pipe.writer, 0, [&] { fired++, loop.stop(); });
  loop.once(0.02, [&] {
    EXPECT_EQ(fired, 0);
    Pipe::shut(pipe.reader);
  });
  loop.once(10, stop());
  EXPECT_TRUE(loop.run());
  EXPECT_EQ(fired, 1);
  EXPECT_LT(seconds_since(start), 5);
}

TEST_F(LoopTest, HangUpOfAWriter) {
  bool ended = false;
  loop.watch(pipe.reader, EPOLLIN, [&] {
    ended = rest_of(pipe.reader).empty();
    loop.stop();
  });
  Pipe::shut(pipe.writer);
  EXPECT_TRUE(loop.run());
  EXPECT_TRUE(ended);
}

TEST_F(LoopTest, FilesAndNoDescriptorsAreNoTrouble) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  loop.watch(file, 0, [] { FAIL() << "a file is always ready: nothing to wait for"; });
  loop.watch(-1, 0, [] { FAIL(); });
  loop.once(0.01, stop());
  EXPECT_TRUE(loop.run());
  close(file);
}

TEST(Loop, LeavesWatchedDescriptorsOpenAndClosesItsOwn) {
  Pipe pipe;
  const int before = next_descriptor();
  for (int i = 0; i < 10; i++) {
    Loop loop;
    ASSERT_TRUE(loop.open());
    loop.watch(pipe.reader, EPOLLIN, [] {});
    loop.every(1, [] {});
    loop.once(1, [] {});
  }
  EXPECT_EQ(before, next_descriptor());
  EXPECT_NE(fcntl(pipe.reader, F_GETFD), -1);
}

/// Runs a loop until a signal, or for this time; 0: it ended by `expected`. Signals are for the
/// whole process, so such tests run in a child.
int ends_by(int expected, double seconds, std::function<void()> soon = {}) {
  block_signals();
  if (!soon) raise(expected);  // before the loop exists
  Loop loop;
  if (!loop.open()) return 1;
  if (soon) loop.once(0.01, soon);
  loop.stop_after(seconds);
  if (!loop.run()) return 3;
  return loop.signal() == expected ? 0 : 2;
}

// Work in steps: timers and signals are handled between them.
TEST_F(LoopTest, SoonLeavesTurnsToOthers) {
  std::function<void()> step = [&] {
    fired++;
    loop.soon(step);
  };
  step();
  loop.stop_after(0.05);
  EXPECT_TRUE(loop.run());
  EXPECT_GT(fired, 2);
}

TEST_F(LoopTest, EndsCanBeReadWhenOneIsDue) {
  pollfd ends{loop.ends(), POLLIN, 0};
  loop.stop_after(0.02);
  EXPECT_EQ(poll(&ends, 1, 0), 0);
  EXPECT_EQ(poll(&ends, 1, 10'000), 1);
  EXPECT_TRUE(loop.run());
}

TEST_F(LoopTest, SaysWhatItCannotWaitFor) {
  loop.watch(1 << 20, EPOLLIN, [] {});  // no such descriptor
  auto ran = loop.run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().what, "cannot wait for events");
}

// A signal that was ignored at the start ends it, too, except SIGHUP, which stays ignored, for
// nohup; a child gets the others back.
TEST(Signals, EachThatAsksToEndEndsTheLoop) {
  for (auto before : {SIG_DFL, SIG_IGN})
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      EXPECT_EQ(in_child([&] {
                  ::signal(signal, before);
                  const bool stays = before == SIG_IGN && signal == SIGHUP;
                  const int ended =
                      ends_by(stays ? 0 : signal, stays ? 0.1 : 10, [signal] { raise(signal); });
                  if (before == SIG_IGN) unblock_signals(), raise(signal);
                  return ended;
                }),
                0)
          << signal;
}

TEST(Signals, BeforeTheLoopIsThereIsNotForgotten) {
  EXPECT_EQ(in_child([] { return ends_by(SIGTERM, 10); }), 0);
}

int writes_to_nobody() {
  Pipe pipe;
  Pipe::shut(pipe.reader);
  return write(pipe.writer, "x", 1) < 0 && errno == EPIPE ? 0 : 1;
}

// A write to a closed pipe must fail, not kill.
TEST(Signals, BrokenPipesAreErrors) {
  EXPECT_EQ(in_child([] { return block_signals(), writes_to_nobody(); }), 0);
}

TEST(Signals, ChildrenGetThemBack) {
  auto raised = [](int signal) { return unblock_signals(), raise(signal), 7; };
  EXPECT_EQ(in_child([&] { return block_signals(), raised(SIGTERM); }), 1000 + SIGTERM);
  EXPECT_EQ(in_child([&] { return block_signal(SIGUSR1), raised(SIGUSR1); }), 1000 + SIGUSR1);
  // A signal that was blocked before stays blocked.
  EXPECT_EQ(7, in_child([&] {
              sigset_t before;
              sigemptyset(&before);
              sigaddset(&before, SIGUSR1);
              sigprocmask(SIG_BLOCK, &before, nullptr);
              return block_signal(SIGUSR1), raised(SIGUSR1);
            }));
  EXPECT_EQ(in_child([] { return block_signals(), unblock_signals(), writes_to_nobody(); }),
            1000 + SIGPIPE);
}

}  // namespace
}  // namespace coretap
