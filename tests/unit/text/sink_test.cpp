#include "text/sink.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "expect.hpp"

namespace coretap {
namespace {

class SinkTest : public testing::Test {
 protected:
  SinkTest() {
    before_ = signal(SIGPIPE, SIG_IGN);  // as block_signals() does
    if (pipe2(fds_, O_CLOEXEC)) fds_[0] = fds_[1] = -1;
  }
  ~SinkTest() override {
    close_reader();
    close_writer();
    signal(SIGPIPE, before_);
  }
  int reader() const { return fds_[0]; }
  int writer() const { return fds_[1]; }
  void close_reader() { shut(fds_[0]); }
  void close_writer() { shut(fds_[1]); }
  /// What waits in the pipe.
  std::string waiting() {
    std::string text;
    char buffer[4096];
    fcntl(reader(), F_SETFL, O_NONBLOCK);
    for (ssize_t n = 0; (n = read(reader(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }

 private:
  static void shut(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  int fds_[2] = {-1, -1};
  sighandler_t before_;
};

TEST_F(SinkTest, WritesWholeLinesAtOnce) {
  // A pipe that keeps writes apart.
  fcntl(writer(), F_SETFL, O_DIRECT);
  fcntl(reader(), F_SETFL, O_NONBLOCK);
  Sink sink(writer());
  for (char c : {'a', 'b', 'c', 'd'}) sink.line(std::string(1500, c));
  sink.flush();
  std::string all;
  char part[8192];
  for (ssize_t n = 0; (n = read(reader(), part, sizeof part)) > 0;) {
    EXPECT_EQ(part[n - 1], '\n');
    all.append(part, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(all.size(), 4 * 1501u);
}

TEST_F(SinkTest, WritesWholeReportsAtOnce) {
  Sink sink(writer());
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
  Sink sink(writer());
  fcntl(writer(), F_SETPIPE_SZ, 1 << 18);
  std::string half(40 << 10, 'x');
  sink.write(half);
  EXPECT_EQ(waiting(), "");
  sink.write(half);
  EXPECT_EQ(waiting().size(), 2 * half.size());
}

TEST_F(SinkTest, AReaderThatHasGoneIsAQuietEnd) {
  Sink sink(writer());
  close_reader();
  sink.line("text");
  sink.flush();
  EXPECT_TRUE(sink.closed());
  EXPECT_FALSE(sink.failed());
  // Everything after is dropped, at once and permanently.
  for (int i = 0; i < 1000; i++) sink.write(std::string(1000, 'x'));
  sink.flush();
  EXPECT_TRUE(sink.closed());
  EXPECT_FALSE(sink.failed());
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

// Someone has made our standard output non-blocking (it is shared with other processes).
TEST_F(SinkTest, PartialWritesToAFullPipe) {
  fcntl(writer(), F_SETFL, O_NONBLOCK);
  fcntl(writer(), F_SETPIPE_SZ, 4096);
  std::string expected, got;
  for (int i = 0; i < 40000; i++) expected += std::to_string(i) + "\n";
  std::thread slow([&] {
    char buffer[1000];
    for (ssize_t n = 0; (n = read(reader(), buffer, sizeof buffer)) > 0;)
      got.append(buffer, static_cast<std::size_t>(n));
  });
  Sink sink(writer());
  for (int i = 0; i < 40000; i++) sink.line(std::to_string(i));
  sink.flush();
  close_writer();
  slow.join();
  EXPECT_FALSE(sink.failed());
  EXPECT_FALSE(sink.closed());
  EXPECT_TRUE(got == expected) << got.size() << " bytes of " << expected.size();
}

TEST_F(SinkTest, TheReaderGoesWhileWeWait) {
  fcntl(writer(), F_SETFL, O_NONBLOCK);
  fcntl(writer(), F_SETPIPE_SZ, 4096);
  std::thread goes([&] {
    usleep(50'000);
    close_reader();
  });
  Sink sink(writer());
  sink.write(std::string(1 << 20, 'x'));
  sink.flush();
  goes.join();
  EXPECT_TRUE(sink.closed());
}

TEST_F(SinkTest, BytesPassUnchanged) {
  std::string all;
  for (int c = 0; c < 256; c++) all += static_cast<char>(c);
  Sink sink(writer());
  sink.write(all);
  sink.flush();
  EXPECT_EQ(waiting(), all);
}

}  // namespace
}  // namespace coretap
