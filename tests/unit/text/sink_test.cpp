#include "text/sink.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

class SinkTest : public testing::Test {
 protected:
  ~SinkTest() override { signal(SIGPIPE, before_); }
  /// What waits in the pipe.
  std::string waiting() {
    fcntl(pipe.reader, F_SETFL, O_NONBLOCK);
    return rest_of(pipe.reader);
  }
  /// Someone has made our standard output non-blocking (it is shared with other processes).
  void small_and_shared() {
    fcntl(pipe.writer, F_SETFL, O_NONBLOCK);
    fcntl(pipe.writer, F_SETPIPE_SZ, 4096);
  }
  void expect_closed() {
    EXPECT_TRUE(sink.closed());
    EXPECT_FALSE(sink.failed());
  }

  Pipe pipe;
  Sink sink{pipe.writer};

 private:
  sighandler_t before_ = signal(SIGPIPE, SIG_IGN);  // as block_signals() does
};

TEST_F(SinkTest, WritesWholeLinesAtOnce) {
  // A pipe that keeps writes apart.
  fcntl(pipe.writer, F_SETFL, O_DIRECT);
  fcntl(pipe.reader, F_SETFL, O_NONBLOCK);
  for (char c : {'a', 'b', 'c', 'd'}) sink.line(std::string(1500, c));
  sink.flush();
  std::size_t all = 0;
  char part[8192];
  for (ssize_t n = 0; (n = read(pipe.reader, part, sizeof part)) > 0;) {
    EXPECT_EQ(part[n - 1], '\n');
    all += static_cast<std::size_t>(n);
  }
  EXPECT_EQ(all, 4 * 1501u);
}

TEST_F(SinkTest, WritesWholeReportsAtOnce) {
  sink.write("a");
  sink.line("b");
  EXPECT_EQ(waiting(), "") << "nothing before the report is complete";
  sink.flush();
  EXPECT_EQ(waiting(), "ab\n");
  sink.flush();
  EXPECT_EQ(waiting(), "");
  EXPECT_FALSE(sink.closed());
  EXPECT_FALSE(sink.failed());
}

TEST_F(SinkTest, LargeOutputIsNotHeldBack) {
  fcntl(pipe.writer, F_SETPIPE_SZ, 1 << 18);
  std::string half(40 << 10, 'x');
  sink.write(half);
  EXPECT_EQ(waiting(), "");
  sink.write(half);
  EXPECT_EQ(waiting().size(), 2 * half.size());
}

TEST_F(SinkTest, AReaderThatHasGoneIsAQuietEnd) {
  Pipe::shut(pipe.reader);
  sink.line("text");
  sink.flush();
  expect_closed();
  // Everything after is dropped, at once and permanently.
  for (int i = 0; i < 1000; i++) sink.write(std::string(1000, 'x'));
  sink.flush();
  expect_closed();
}

TEST(Sink, AFullDiskIsAnErrorWithAHint) {
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full";
  Sink sink(full);
  sink.line("text");
  EXPECT_FALSE(sink.failed()) << "not yet written";
  sink.flush();
  EXPECT_TRUE(sink.failed());
  EXPECT_FALSE(sink.closed());
  EXPECT_EQ(sink.error().why, strerror(ENOSPC));
  EXPECT_FALSE(sink.error().hint.empty());
  EXPECT_EQ(sink.error().status, kFailed);
  close(full);
  sink.line("more");
  sink.flush();
  EXPECT_EQ(sink.error().why, strerror(ENOSPC)) << "the first failure stays";
}

TEST(Sink, OtherFailures) {
  int only_read = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Sink sink(only_read);
  sink.line("text");
  sink.flush();
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(sink.error().why, strerror(EBADF));
  EXPECT_TRUE(sink.error().hint.empty());
  close(only_read);
}

TEST_F(SinkTest, PartialWritesToAFullPipe) {
  small_and_shared();
  std::string expected, got;
  for (int i = 0; i < 40000; i++) expected += std::to_string(i) + "\n";
  std::thread slow([&] { got = rest_of(pipe.reader); });
  for (int i = 0; i < 40000; i++) sink.line(std::to_string(i));
  sink.flush();
  Pipe::shut(pipe.writer);
  slow.join();
  EXPECT_FALSE(sink.failed());
  EXPECT_FALSE(sink.closed());
  EXPECT_TRUE(got == expected) << got.size() << " bytes of " << expected.size();
}

TEST_F(SinkTest, TheReaderGoesWhileWeWait) {
  small_and_shared();
  std::thread goes([&] {
    usleep(50'000);
    Pipe::shut(pipe.reader);
  });
  sink.write(std::string(1 << 20, 'x'));
  sink.flush();
  goes.join();
  EXPECT_TRUE(sink.closed());
}

TEST_F(SinkTest, BytesPassUnchanged) {
  std::string all;
  for (int c = 0; c < 256; c++) all += static_cast<char>(c);
  sink.write(all);
  sink.flush();
  EXPECT_EQ(waiting(), all);
}

}  // namespace
}  // namespace coretap
