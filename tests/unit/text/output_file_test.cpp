#include "text/output_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "expect.hpp"
#include "kernel/capabilities.hpp"
#include "text/sink.hpp"

namespace coretap {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    char name[] = "/tmp/coretap-output-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~OutputFileTest() override { fs::remove_all(directory_); }

  std::string path() const { return directory_ + "/data"; }
  std::string old(int number) const { return path() + "." + std::to_string(number); }
  std::string directory() const { return directory_; }

  OutputFile::How how(std::uint64_t most, std::uint64_t keep = 99) {
    OutputFile::How h{.most = most, .keep = keep};
    h.tell = [this](std::string_view what, const Error& why) {
      told_.push_back(std::string(what) + ": " + why.why);
    };
    return h;
  }
  /// Where the sink has written its header.
  static void with_header(Sink& sink, const std::string& header = "HEADER\n") {
    sink.write(header);
    sink.keep_header();
  }
  /// The oldest first; each begins with `header`, which is taken off.
  std::vector<std::string> bodies(const std::string& header = "HEADER\n") const {
    std::vector<std::string> all;
    for (int n = 99; n >= 0; n--) {
      auto name = n ? old(n) : path();
      if (!fs::exists(name)) continue;
      auto text = content(name);
      EXPECT_TRUE(text.starts_with(header)) << name << ": " << text.substr(0, 100);
      all.push_back(text.substr(std::min(text.size(), header.size())));
    }
    return all;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  const std::vector<std::string>& told() const { return told_; }

 private:
  std::string directory_;
  std::vector<std::string> told_;
};

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (auto& part : parts) all += part;
  return all;
}

TEST_F(OutputFileTest, RotationLosesAndDoublesNothing) {
  constexpr std::size_t kMost = 1000;
  for (unsigned seed = 0; seed < 30; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool torn = seed % 2;  // what ends in the middle of a line is written, too
    OutputFile file;
    ASSERT_TRUE(file.open(path(), how(kMost)));
    Sink sink(file);
    with_header(sink);
    std::string written;
    for (int i = 0; i < 200; i++) {
      // Mostly short ones; some that no file has room for.
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
      if (!torn && body.size() + strlen("HEADER\n") > kMost) {
        EXPECT_EQ(std::count(body.begin(), body.end(), '\n'), 1) << "a line alone may be longer";
      }
    }
    EXPECT_TRUE(told().empty());
    for (auto& entry : fs::directory_iterator(directory())) fs::remove(entry);
  }
}

TEST_F(OutputFileTest, FilesAreFilled) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(1000)));
  Sink sink(file);
  with_header(sink);
  for (int i = 0; i < 500; i++) sink.line("123456789");
  sink.flush();
  auto all = bodies();
  // 7 bytes of header, 99 lines of 10.
  ASSERT_EQ(all.size(), 6u);
  for (std::size_t i = 0; i + 1 < all.size(); i++) EXPECT_EQ(all[i].size(), 990u);
  EXPECT_EQ(all.back().size(), 50u);
}

// A header that is longer than what is written at once, and than a file.
TEST_F(OutputFileTest, LongHeaders) {
  for (std::size_t length : {std::size_t{100'000}, std::size_t{900}}) {
    const auto header = std::string(length, 'h') + "\n";
    const std::uint64_t most = length > 1000 ? 64 << 10 : 1000;
    {
      OutputFile file;
      ASSERT_TRUE(file.open(path(), how(most)));
      Sink sink(file);
      with_header(sink, header);
      for (std::uint64_t i = 0; i < most; i++) sink.line("123456789");
      sink.flush();
    }
    auto all = bodies(header);
    EXPECT_GE(all.size(), 10u);
    EXPECT_LE(all.size(), 11u);
    for (auto& body : all) EXPECT_LE(body.size(), most);
    EXPECT_EQ(joined(all).size(), 10 * most);
    for (auto& entry : fs::directory_iterator(directory())) fs::remove(entry);
  }
}

TEST_F(OutputFileTest, OldFilesGo) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(100, 2)));
  Sink sink(file);
  with_header(sink);
  std::string written;
  for (int i = 1000; i < 1200; i++) {
    written += std::to_string(i) + "\n";
    sink.line(std::to_string(i));
    sink.flush();
  }
  EXPECT_EQ(files(), 3u);
  auto last = joined(bodies());
  EXPECT_TRUE(written.ends_with(last));
  EXPECT_GT(last.size(), 180u) << "two of them are full";
}

TEST_F(OutputFileTest, OneOldFile) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(100, 1)));
  Sink sink(file);
  sink.keep_header();
  for (int i = 1000; i < 1200; i++) sink.line(std::to_string(i));
  sink.flush();
  EXPECT_EQ(files(), 2u);
  EXPECT_TRUE((content(old(1)) + content(path())).ends_with("1198\n1199\n"));
}

TEST_F(OutputFileTest, ReportsStayWholeWhereTheyFit) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(100)));
  Sink sink(file);
  sink.keep_header();
  const std::string report = "[12:00:00]\n" + std::string(40, 'x') + "\n\n";
  for (int i = 0; i < 6; i++) {
    sink.write(report);
    sink.flush(true);
  }
  for (auto& body : bodies("")) EXPECT_EQ(body, report);
  // One that fits into none is cut between lines.
  std::string longer;
  for (int i = 0; i < 100; i++) longer += "a line of this report\n";
  sink.write(longer);
  sink.flush(true);
  EXPECT_TRUE(joined(bodies("")).ends_with(report + longer));
}

TEST_F(OutputFileTest, AFileThatCannotBeRenamedGoesOn) {
  fs::create_directories(old(1) + "/full");
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(100, 1)));
  Sink sink(file);
  with_header(sink);
  std::string written;
  auto more = [&](int lines) {
    for (int i = 0; i < lines; i++) {
      auto line = "line " + std::to_string(written.size());
      written += line + "\n";
      sink.line(line);
      sink.flush();
    }
  };
  more(100);
  EXPECT_EQ(content(path()), "HEADER\n" + written);
  ASSERT_EQ(told().size(), 1u) << "once";
  EXPECT_NE(told()[0].find(path()), std::string::npos) << told()[0];
  EXPECT_EQ(files(), 2u) << "nothing half done is left";
  EXPECT_FALSE(sink.failed());
  // It is tried again.
  fs::remove_all(old(1));
  more(100);
  EXPECT_LE(content(path()).size(), 100u);
  EXPECT_LE(content(old(1)).size(), 100u);
  EXPECT_TRUE(written.ends_with(joined(bodies())));
  EXPECT_EQ(told().size(), 1u);
}

TEST_F(OutputFileTest, NoOldFileGoesForNothing) {
  for (int n = 1; n <= 3; n++) std::ofstream(old(n)) << "old " << n;
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(100, 3)));
  Sink sink(file);
  sink.keep_header();
  std::string written;
  {
    // No descriptor is left for a new file.
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit none{static_cast<rlim_t>(file.fd()), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    for (int i = 0; i < 100; i++) {
      written += "a line that is of some length\n";
      sink.line("a line that is of some length");
      sink.flush();
    }
    setrlimit(RLIMIT_NOFILE, &before);
  }
  EXPECT_EQ(told().size(), 1u);
  EXPECT_EQ(content(path()), written);
  for (int n = 1; n <= 3; n++) EXPECT_EQ(content(old(n)), "old " + std::to_string(n));
}

TEST_F(OutputFileTest, AnotherProgramHasRenamedIt) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(100)));
  Sink sink(file);
  with_header(sink);
  sink.line(std::string(80, 'a'));
  sink.flush();
  fs::rename(path(), path() + ".theirs");
  sink.line(std::string(80, 'b'));
  sink.flush();
  EXPECT_EQ(content(path() + ".theirs"), "HEADER\n" + std::string(80, 'a') + "\n");
  EXPECT_EQ(content(path()), "HEADER\n" + std::string(80, 'b') + "\n");
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFileTest, GoesOnInTheFileThatHasTheName) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(0)));
  Sink sink(file);
  with_header(sink);
  sink.line("one");
  fs::rename(path(), old(1));
  sink.line("two");
  sink.reopen();
  sink.line("three");
  sink.flush();
  EXPECT_EQ(content(old(1)), "HEADER\none\ntwo\n");
  EXPECT_EQ(content(path()), "HEADER\nthree\n");
  struct stat made {};
  ASSERT_EQ(stat(path().c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600u);
  // It is the same: there is nothing to begin.
  sink.reopen();
  sink.line("four");
  sink.flush();
  EXPECT_EQ(content(path()), "HEADER\nthree\nfour\n");
  // One that logrotate has made is not replaced.
  fs::rename(path(), old(2));
  std::ofstream(path()) << "theirs\n";
  sink.reopen();
  sink.line("five");
  sink.flush();
  EXPECT_EQ(content(path()), "theirs\nHEADER\nfive\n");
  EXPECT_TRUE(told().empty());
}

TEST_F(OutputFileTest, TheOldFileGoesOnIfTheNameCannotBeOpened) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(0)));
  Sink sink(file);
  sink.keep_header();
  sink.line("one");
  sink.flush();
  fs::rename(path(), old(1));
  fs::create_directory(path());
  sink.reopen();
  sink.line("two");
  sink.flush();
  EXPECT_EQ(content(old(1)), "one\ntwo\n");
  ASSERT_EQ(told().size(), 1u);
  EXPECT_NE(told()[0].find(path()), std::string::npos) << told()[0];
  // A pipe without a reader must not block it.
  fs::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  sink.reopen();
  sink.line("three");
  sink.flush();
  EXPECT_EQ(content(old(1)), "one\ntwo\nthree\n");
  EXPECT_EQ(told().size(), 2u);
}

TEST_F(OutputFileTest, AppendsToWhatIsThere) {
  auto append = [&](std::uint64_t most, std::string_view line) {
    auto appending = how(most);
    appending.append = true;
    OutputFile file;
    ASSERT_TRUE(file.open(path(), appending));
    Sink sink(file);
    with_header(sink);
    sink.write(line);
    sink.flush();
  };
  for (auto& [before, after] : {std::pair{"", ""}, {"whole\n", "whole\n"}, {"to", "to\n"}}) {
    std::ofstream(path()) << before;
    append(0, "new\n");
    EXPECT_EQ(content(path()), after + std::string("HEADER\nnew\n"));
  }
  // What is there counts.
  std::ofstream(path()) << std::string(90, 'x') << '\n';
  append(100, "new\n");
  EXPECT_EQ(content(old(1)), std::string(90, 'x') + "\nHEADER\n");
  EXPECT_EQ(content(path()), "HEADER\nnew\n");
  // The header, too.
  std::ofstream(path()) << std::string(98, 'x') << '\n';
  append(100, "");
  EXPECT_EQ(content(old(1)), std::string(98, 'x') + "\n");
  EXPECT_EQ(content(path()), "HEADER\n");
}

TEST_F(OutputFileTest, ReplacesWhatIsThere) {
  std::ofstream(path()) << "before\n";
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(0)));
  Sink sink(file);
  sink.keep_header();
  sink.line("new");
  sink.flush();
  EXPECT_EQ(content(path()), "new\n");
}

TEST_F(OutputFileTest, TheReadersStay) {
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(20)));
  Sink sink(file);
  sink.keep_header();
  sink.line("some text that is long");
  sink.flush();
  ASSERT_EQ(chmod(path().c_str(), 0640), 0);
  sink.line("some text that is long");
  sink.flush();
  struct stat made {};
  ASSERT_EQ(stat(path().c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0640u);
  if (geteuid() != 0) return;
  // A group that this process may not give files to.
  ASSERT_EQ(chown(path().c_str(), 0, 54321), 0);
  EffectiveOnly nothing({});
  sink.line("some text that is long");
  sink.flush();
  ASSERT_EQ(stat(path().c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600u);
}

TEST_F(OutputFileTest, RefusesWhatCannotBeRenamed) {
  auto link = directory() + "/link";
  std::ofstream(path()) << "text";
  ASSERT_EQ(symlink(path().c_str(), link.c_str()), 0);
  auto pipe = directory() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (auto& name : {link, pipe, std::string("/dev/null"), std::string("/dev/stdout")}) {
    OutputFile file;
    auto opened = file.open(name, how(1000));
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().status, kUsage);
    EXPECT_NE(opened.error().what.find(name), std::string::npos);
  }
  EXPECT_EQ(content(path()), "text");
  OutputFile file;
  EXPECT_TRUE(file.open(link, how(0))) << "without --rotate it may be anything";
}

TEST_F(OutputFileTest, AFullDiskEndsIt) {
  auto before_signal = signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit little{5000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  OutputFile file;
  auto opened = file.open(path(), how(10000));
  Sink sink(file);
  sink.keep_header();
  for (int i = 0; i < 1000; i++) sink.line("123456789");
  sink.flush();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, before_signal);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(sink.error().what, "cannot write to " + path());
  EXPECT_EQ(sink.error().why, strerror(EFBIG));
  EXPECT_EQ(content(path()).size(), 5000u);
}

// As it runs: root that has given up its capabilities.
TEST_F(OutputFileTest, RightsAreThoseOfTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  OutputFile file;
  ASSERT_TRUE(file.open(path(), how(20, 2)));
  Sink sink(file);
  sink.keep_header();
  {
    EffectiveOnly nothing({});
    EXPECT_EQ(file.hindrance(), "");
    for (int i = 0; i < 3; i++) sink.line("some text that is long");
    sink.flush();
    EXPECT_EQ(files(), 3u);
    EXPECT_TRUE(told().empty());
    fs::rename(path(), old(9));
    sink.reopen();
    EXPECT_TRUE(fs::exists(path()));
  }
  ASSERT_EQ(chown(directory().c_str(), 54321, 54321), 0);
  ASSERT_EQ(chmod(directory().c_str(), 0755), 0);
  EXPECT_EQ(file.hindrance(), "") << "by CAP_DAC_OVERRIDE";
  EffectiveOnly nothing({});
  EXPECT_NE(file.hindrance().find(directory()), std::string::npos) << file.hindrance();
  auto before = content(path());
  for (int i = 0; i < 3; i++) sink.line("some text that is long");
  sink.flush();
  EXPECT_TRUE(content(path()).starts_with(before));
  EXPECT_EQ(content(path()).size(), before.size() + 3 * 23);
  ASSERT_EQ(told().size(), 1u);
  EXPECT_NE(told()[0].find("Permission denied"), std::string::npos) << told()[0];
  ASSERT_FALSE(sink.failed());
}

}  // namespace
}  // namespace coretap
