// Output to pipes, disks and rotated files.
#include <sys/resource.h>

#include "expect.hpp"
#include "kernel/capabilities.hpp"
#include "text/output_file.hpp"
#include "text/sink.hpp"

namespace coretap {
namespace {

class SinkTest : public testing::Test {
 protected:
  ~SinkTest() override { signal(SIGPIPE, before_); }
  /// Unread bytes of the pipe.
  std::string waiting() {
    fcntl(pipe.reader, F_SETFL, O_NONBLOCK);
    return rest_of(pipe.reader);
  }
  /// Another process has made the shared standard output non-blocking.
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
  // A pipe that preserves write boundaries.
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
  std::string all;
  for (int c = 0; c < 256; c++) all += static_cast<char>(c);
  sink.write(all);
  sink.line("b");
  EXPECT_EQ(waiting(), "") << "nothing before the report is complete";
  sink.flush();
  EXPECT_EQ(waiting(), all + "b\n");
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
  // Everything after is dropped, immediately and permanently.
  for (int i = 0; i < 1000; i++) sink.write(std::string(1000, 'x'));
  sink.flush();
  expect_closed();
}

TEST(Sink, Failures) {
  for (auto [path, flags, error] :
       {std::tuple{"/dev/full", O_WRONLY, ENOSPC}, {"/dev/null", O_RDONLY, EBADF}}) {
    int file = open(path, flags | O_CLOEXEC);
    if (file < 0) GTEST_SKIP() << "no " << path;
    Sink sink(file);
    sink.line("text");
    EXPECT_FALSE(sink.failed()) << "not yet written";
    sink.flush();
    EXPECT_TRUE(sink.failed());
    EXPECT_FALSE(sink.closed());
    EXPECT_EQ(sink.error().status, kFailed);
    EXPECT_EQ(sink.error().why, strerror(error));
    EXPECT_EQ(sink.error().hint.empty(), error != ENOSPC) << "a disk can be made larger";
    close(file);
    sink.line("more");
    sink.flush();
    EXPECT_EQ(sink.error().why, strerror(error)) << "the first failure stays";
  }
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

// It takes longer each time than one may that has taken nothing since the signal.
TEST_F(SinkTest, SlowReadersGetTheRestAfterASignal) {
  small_and_shared();
  Pipe signals;
  const std::string rest(5 * 4096, 'x');
  std::string got;
  std::thread slow([&] {
    std::string part(4096, '\0');
    ssize_t n = 0;
    for (useconds_t wait = 50'000;
         usleep(wait), (n = read(pipe.reader, part.data(), part.size())) > 0; wait = 300'000)
      got.append(part, 0, static_cast<std::size_t>(n));
  });
  sink.ending(signals.reader, true, [](std::string_view) {});
  sink.write(rest);
  sink.flush();
  EXPECT_FALSE(sink.dropped());
  Pipe::shut(pipe.writer);
  slow.join();
  EXPECT_EQ(got, rest);
}

TEST_F(SinkTest, ReadersThatStopAreLeftAfterASignal) {
  if (isatty(STDERR_FILENO)) GTEST_SKIP() << "at a terminal the user can press Ctrl-C again";
  small_and_shared();
  Pipe signals;
  std::thread stops([&] {
    std::string part(4096, '\0');
    usleep(50'000);
    EXPECT_EQ(read(pipe.reader, part.data(), part.size()), 4096);
  });
  std::string said;
  sink.ending(signals.reader, true, [&](std::string_view text) { said = text; });
  sink.write(std::string(5 * 4096, 'x'));
  sink.flush();
  stops.join();
  EXPECT_TRUE(sink.dropped());
  EXPECT_EQ(said, "the end of the output was not written: its reader has stalled");
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

const std::string kHeader = "HEADER\n";

class OutputFileTest : public testing::Test {
 protected:
  std::string old(int number) const { return path + "." + std::to_string(number); }

  OutputFile::How how(std::uint64_t most, std::uint64_t keep = 99) {
    OutputFile::How h{.most = most, .keep = keep};
    h.tell = [this](std::string_view what, const Error& why) {
      told.push_back(std::string(what) + ": " + why.why);
    };
    return h;
  }
  /// Returns a sink that has written its header.
  Sink& begin(const OutputFile::How& how, const std::string& header = "") {
    sink_.reset();
    file.emplace();
    auto opened = file->open(path, how);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().what);
    sink_.emplace(*file);
    sink_->write(header);
    sink_->keep_header();
    return *sink_;
  }
  /// Writes lines one by one.
  void say(std::string_view line, int times = 1) {
    for (int i = 0; i < times; i++) {
      sink_->line(line);
      sink_->flush();
    }
  }
  /// The oldest first; each starts with `header`, which is removed.
  Words bodies(const std::string& header = kHeader) const {
    Words all;
    for (int n = 99; n >= 0; n--) {
      auto name = n ? old(n) : path;
      if (!fs::exists(name)) continue;
      auto text = places::file_text(name);
      EXPECT_TRUE(text.starts_with(header)) << name << ": " << text.substr(0, 100);
      all.push_back(text.substr(std::min(text.size(), header.size())));
    }
    return all;
  }
  std::string content() const { return places::file_text(path); }
  std::string content(int number) const { return places::file_text(old(number)); }
  unsigned rights() const {
    struct stat made {};
    EXPECT_EQ(stat(path.c_str(), &made), 0);
    return made.st_mode & 0777;
  }
  std::size_t files() const { return directory.names().size(); }
  void remove_all() const {
    for (auto& entry : fs::directory_iterator(directory.path())) fs::remove(entry);
  }
  /// One failure was reported, for this file.
  void expect_told(const std::string& part) const {
    ASSERT_EQ(told.size(), 1u);
    EXPECT_TRUE(says(told[0], part));
  }
  /// Runs it with a resource limit of this process.
  template <class Body>
  static void with_limit(__rlimit_resource_t what, rlim_t most, Body body) {
    rlimit before{};
    getrlimit(what, &before);
    rlimit little{most, before.rlim_max};
    setrlimit(what, &little);
    body();
    setrlimit(what, &before);
  }

  ScratchDirectory directory;
  const std::string path = directory.in("data");
  Words told;
  std::optional<OutputFile> file;

 private:
  std::optional<Sink> sink_;
};

std::string joined(const Words& parts) { return fmt::format("{}", fmt::join(parts, "")); }

TEST_F(OutputFileTest, RotationLosesAndDoublesNothing) {
  constexpr std::size_t kMost = 1000;
  for (unsigned seed = 0; seed < 30; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool torn = seed % 2;  // a partial last line is written, too
    auto& sink = begin(how(kMost), kHeader);
    std::string written;
    for (int i = 0; i < 200; i++) {
      // Mostly short ones; some too long for any file.
      auto length = random() % 20 == 0 ? random() % 2500 : random() % 150;
      auto line = std::to_string(i) + std::string(length, static_cast<char>('a' + i % 26)) + "\n";
      written += line;
      auto cut = random() % line.size();
      sink.write(line.substr(0, cut));
      if (torn && random() % 7 == 0) sink.flush();
      sink.write(line.substr(cut));
      if (random() % 5 == 0) sink.flush();
    }
    sink.flush();
    auto all = bodies();
    EXPECT_GT(all.size(), 10u);
    EXPECT_TRUE(joined(all) == written);
    for (auto& body : all) {
      if (body.empty()) continue;
      EXPECT_EQ(body.back(), '\n');
      if (!torn && body.size() + kHeader.size() > kMost) {
        EXPECT_EQ(count_of(body, "\n"), 1u) << "a line alone may be longer";
      }
    }
    EXPECT_TRUE(told.empty());
    remove_all();
  }
}

TEST_F(OutputFileTest, FilesAreFilled) {
  auto& sink = begin(how(1000), kHeader);
  for (int i = 0; i < 500; i++) sink.line("123456789");
  sink.flush();
  auto all = bodies();
  // 7 bytes of header, 99 lines of 10.
  ASSERT_EQ(all.size(), 6u);
  for (std::size_t i = 0; i + 1 < all.size(); i++) EXPECT_EQ(all[i].size(), 990u);
  EXPECT_EQ(all.back().size(), 50u);
}

// A header that is longer than one write, and than a file.
TEST_F(OutputFileTest, LongHeaders) {
  for (std::size_t length : {std::size_t{100'000}, std::size_t{900}}) {
    const auto header = std::string(length, 'h') + "\n";
    const std::uint64_t most = length > 1000 ? 64 << 10 : 1000;
    auto& sink = begin(how(most), header);
    for (std::uint64_t i = 0; i < most; i++) sink.line("123456789");
    sink.flush();
    auto all = bodies(header);
    EXPECT_GE(all.size(), 10u);
    EXPECT_LE(all.size(), 11u);
    for (auto& body : all) EXPECT_LE(body.size(), most);
    EXPECT_EQ(joined(all).size(), 10 * most);
    remove_all();
  }
}

TEST_F(OutputFileTest, OldFilesGo) {
  begin(how(100, 2), kHeader);
  std::string written;
  for (int i = 1000; i < 1200; i++) {
    written += std::to_string(i) + "\n";
    say(std::to_string(i));
  }
  EXPECT_EQ(files(), 3u);
  auto last = joined(bodies());
  EXPECT_TRUE(written.ends_with(last));
  EXPECT_GT(last.size(), 180u) << "two of them are full";
  remove_all();
  auto& sink = begin(how(100, 1));
  for (int i = 1000; i < 1200; i++) sink.line(std::to_string(i));
  sink.flush();
  EXPECT_EQ(files(), 2u);
  EXPECT_TRUE((content(1) + content()).ends_with("1198\n1199\n"));
}

TEST_F(OutputFileTest, ReportsStayWholeWhereTheyFit) {
  auto& sink = begin(how(100));
  const std::string report = "[12:00:00]\n" + std::string(40, 'x') + "\n\n";
  for (int i = 0; i < 6; i++) {
    sink.write(report);
    sink.flush(true);
  }
  for (auto& body : bodies("")) EXPECT_EQ(body, report);
  // A text that fits into no file is split between lines.
  std::string longer;
  for (int i = 0; i < 100; i++) longer += "a line of this report\n";
  sink.write(longer);
  sink.flush(true);
  EXPECT_TRUE(joined(bodies("")).ends_with(report + longer));
}

TEST_F(OutputFileTest, AFileThatCannotBeRenamedGoesOn) {
  fs::create_directories(old(1) + "/full");
  auto& sink = begin(how(100, 1), kHeader);
  std::string written;
  auto more = [&] {
    for (int i = 0; i < 100; i++) {
      auto line = "line " + std::to_string(written.size());
      written += line + "\n";
      say(line);
    }
  };
  more();
  EXPECT_EQ(content(), kHeader + written);
  expect_told(path);
  EXPECT_EQ(files(), 2u) << "nothing half done is left";
  EXPECT_FALSE(sink.failed());
  // It is retried.
  fs::remove_all(old(1));
  more();
  EXPECT_LE(content().size(), 100u);
  EXPECT_LE(content(1).size(), 100u);
  EXPECT_TRUE(written.ends_with(joined(bodies())));
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(OutputFileTest, NoOldFileGoesForNothing) {
  for (int n = 1; n <= 3; n++) std::ofstream(old(n)) << "old " << n;
  begin(how(100, 3));
  // No descriptor is left for a new file.
  with_limit(RLIMIT_NOFILE, static_cast<rlim_t>(file->fd()),
             [&] { say("a line that is of some length", 100); });
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(content(), joined(Words(100, "a line that is of some length\n")));
  for (int n = 1; n <= 3; n++) EXPECT_EQ(content(n), "old " + std::to_string(n));
}

TEST_F(OutputFileTest, AnotherProgramHasRenamedIt) {
  begin(how(100), kHeader);
  say(std::string(80, 'a'));
  fs::rename(path, path + ".theirs");
  say(std::string(80, 'b'));
  EXPECT_EQ(places::file_text(path + ".theirs"), kHeader + std::string(80, 'a') + "\n");
  EXPECT_EQ(content(), kHeader + std::string(80, 'b') + "\n");
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFileTest, GoesOnInTheFileThatHasTheName) {
  auto& sink = begin(how(0), kHeader);
  sink.line("one");
  fs::rename(path, old(1));
  sink.line("two");
  sink.reopen();
  say("three");
  EXPECT_EQ(content(1), "HEADER\none\ntwo\n");
  EXPECT_EQ(content(), "HEADER\nthree\n");
  EXPECT_EQ(rights(), 0600u);
  // It is the same file: nothing is started.
  sink.reopen();
  say("four");
  EXPECT_EQ(content(), "HEADER\nthree\nfour\n");
  // A file that logrotate has created is not replaced.
  fs::rename(path, old(2));
  std::ofstream(path) << "theirs\n";
  sink.reopen();
  say("five");
  EXPECT_EQ(content(), "theirs\nHEADER\nfive\n");
  EXPECT_TRUE(told.empty());
}

TEST_F(OutputFileTest, TheOldFileGoesOnIfTheNameCannotBeOpened) {
  auto& sink = begin(how(0));
  say("one");
  fs::rename(path, old(1));
  fs::create_directory(path);
  sink.reopen();
  say("two");
  EXPECT_EQ(content(1), "one\ntwo\n");
  expect_told(path);
  // A pipe without a reader must not block it.
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  sink.reopen();
  say("three");
  EXPECT_EQ(content(1), "one\ntwo\nthree\n");
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(OutputFileTest, AppendsToWhatIsThereOrReplacesIt) {
  auto append = [&](std::uint64_t most, std::string_view line) {
    auto appending = how(most);
    appending.append = true;
    auto& sink = begin(appending, kHeader);
    sink.write(line);
    sink.flush();
  };
  for (auto& [before, after] : {std::pair{"", ""}, {"whole\n", "whole\n"}, {"to", "to\n"}}) {
    std::ofstream(path) << before;
    append(0, "new\n");
    EXPECT_EQ(content(), after + std::string("HEADER\nnew\n"));
  }
  // Existing content counts.
  std::ofstream(path) << std::string(90, 'x') << '\n';
  append(100, "new\n");
  EXPECT_EQ(content(1), std::string(90, 'x') + "\nHEADER\n");
  EXPECT_EQ(content(), "HEADER\nnew\n");
  // The header, too.
  std::ofstream(path) << std::string(98, 'x') << '\n';
  append(100, "");
  EXPECT_EQ(content(1), std::string(98, 'x') + "\n");
  EXPECT_EQ(content(), kHeader);
  begin(how(0));
  say("new");
  EXPECT_EQ(content(), "new\n");
}

TEST_F(OutputFileTest, TheReadersStay) {
  begin(how(20));
  say("some text that is long");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  say("some text that is long");
  EXPECT_EQ(rights(), 0640u);
  if (geteuid() != 0) return;
  // A group that this process may not give files to.
  ASSERT_EQ(chown(path.c_str(), 0, 54321), 0);
  EffectiveOnly nothing({});
  say("some text that is long");
  EXPECT_EQ(rights(), 0600u);
}

TEST_F(OutputFileTest, RefusesWhatCannotBeRenamed) {
  const auto link = directory.in("link"), pipe = directory.in("pipe");
  std::ofstream(path) << "text";
  fs::create_symlink(path, link);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  OutputFile other;
  for (auto& name : {link, pipe, std::string("/dev/null"), std::string("/dev/stdout")}) {
    auto opened = other.open(name, how(1000));
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().status, kUsage);
    EXPECT_TRUE(says(opened.error().what, name));
  }
  EXPECT_EQ(content(), "text");
  EXPECT_TRUE(OutputFile().open(link, how(0))) << "without --rotate it may be anything";
}

TEST_F(OutputFileTest, AFullDiskEndsIt) {
  auto before_signal = signal(SIGXFSZ, SIG_IGN);
  auto& sink = begin(how(10000));
  with_limit(RLIMIT_FSIZE, 5000, [&] {
    for (int i = 0; i < 1000; i++) sink.line("123456789");
    sink.flush();
  });
  signal(SIGXFSZ, before_signal);
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(sink.error().what, "cannot write to " + path);
  EXPECT_EQ(sink.error().why, strerror(EFBIG));
  EXPECT_EQ(content().size(), 5000u);
}

// As the tools run: root that has dropped its capabilities.
TEST_F(OutputFileTest, RightsAreThoseOfTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  auto& sink = begin(how(20, 2));
  auto three_lines = [&] {
    for (int i = 0; i < 3; i++) sink.line("some text that is long");
    sink.flush();
  };
  {
    EffectiveOnly nothing({});
    EXPECT_EQ(file->hindrance(), "");
    three_lines();
    EXPECT_EQ(files(), 3u);
    EXPECT_TRUE(told.empty());
    fs::rename(path, old(9));
    sink.reopen();
    EXPECT_TRUE(fs::exists(path));
  }
  ASSERT_EQ(chown(directory.path().c_str(), 54321, 54321), 0);
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(file->hindrance(), "") << "by CAP_DAC_OVERRIDE";
  EffectiveOnly nothing({});
  EXPECT_TRUE(says(file->hindrance(), directory.path()));
  auto before = content();
  three_lines();
  EXPECT_TRUE(content().starts_with(before));
  EXPECT_EQ(content().size(), before.size() + 3 * 23);
  expect_told("Permission denied");
  ASSERT_FALSE(sink.failed());
}

}  // namespace
}  // namespace coretap
