#include "base/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "expect.hpp"

namespace coretap {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() {
    char name[] = "/tmp/coretap-new-file.XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~NewFileTest() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static std::string text(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }
  static Result<void> write(const std::string& path, std::string_view text) {
    auto file = NewFile::create(path);
    if (!file) return file.error();
    return file->write(text);
  }
  fs::path directory_;
};

TEST_F(NewFileTest, AppearsWhole) {
  auto before = umask(027);
  {
    auto file = NewFile::create(path("a.svg"));
    ASSERT_TRUE(file) << file.error().why;
    EXPECT_FALSE(fs::exists(path("a.svg"))) << "not before it is complete";
    ASSERT_TRUE(file->write("text"));
    EXPECT_EQ(text(path("a.svg")), "text");
  }
  umask(before);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(fs::status(path("a.svg")).permissions(), fs::perms(0640)) << "0666 less the umask";
}

TEST_F(NewFileTest, AnOldOneStaysUntilThen) {
  ASSERT_TRUE(write(path("a"), "old"));
  {
    auto file = NewFile::create(path("a"));
    ASSERT_TRUE(file);
    EXPECT_EQ(text(path("a")), "old");
  }
  EXPECT_EQ(text(path("a")), "old") << "given up";
  EXPECT_EQ(files(), 1u);
  ASSERT_TRUE(write(path("a"), "new"));
  EXPECT_EQ(text(path("a")), "new");
}

TEST_F(NewFileTest, MovedOnesAreCleanedUpOnce) {
  {
    auto file = NewFile::create(path("a"));
    NewFile other = std::move(*file);
    NewFile third;
    third = std::move(other);
    EXPECT_EQ(files(), 1u);
    EXPECT_TRUE(third.write("x"));
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(text(path("a")), "x");
}

TEST_F(NewFileTest, WhatCannotBeWrittenIsRefusedAtOnce) {
  auto missing = NewFile::create(path("no/such/a"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, kFailed);
  EXPECT_EQ(missing.error().why, strerror(ENOENT));
  EXPECT_NE(missing.error().what.find(path("no/such/a")), std::string::npos);
  auto directory = NewFile::create(directory_.string());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().why, strerror(EISDIR));
  EXPECT_FALSE(NewFile::create("/proc/a"));
  EXPECT_EQ(files(), 0u);
}

// Root could replace these.
TEST_F(NewFileTest, DevicesPipesAndLinksAreWrittenThrough) {
  auto device = fs::status("/dev/null");
  ASSERT_TRUE(write("/dev/null", "text"));
  EXPECT_EQ(fs::status("/dev/null").type(), device.type());

  std::ofstream(path("target")) << "a longer text than the new one";
  fs::create_symlink(path("target"), path("link"));
  ASSERT_TRUE(write(path("link"), "text"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text(path("target")), "text");

  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  auto alone = NewFile::create(path("pipe"));
  ASSERT_FALSE(alone) << "it has no reader";
  EXPECT_EQ(alone.error().why, strerror(ENXIO));
  int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::string large(1 << 20, 'x'), got;
  auto file = NewFile::create(path("pipe"));
  ASSERT_TRUE(file);
  fcntl(reader, F_SETFL, 0);
  std::thread reads([&] {
    char buffer[4096];
    for (ssize_t n = 0; (n = read(reader, buffer, sizeof buffer)) > 0;)
      got.append(buffer, static_cast<std::size_t>(n));
  });
  EXPECT_TRUE(file->write(large));
  reads.join();
  EXPECT_TRUE(got == large);
  close(reader);
}

TEST_F(NewFileTest, AFullDiskIsAnErrorWithAHint) {
  if (access("/dev/full", W_OK)) GTEST_SKIP() << "no /dev/full";
  auto result = write("/dev/full", "text");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, strerror(ENOSPC));
  EXPECT_FALSE(result.error().hint.empty());
}

TEST_F(NewFileTest, NamesThatAreTakenAreLeftAlone) {
  auto one = NewFile::create(path("a")), two = NewFile::create(path("a"));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(files(), 2u);
  EXPECT_TRUE(one->write("one"));
  EXPECT_TRUE(two->write("two"));
  EXPECT_EQ(text(path("a")), "two");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace coretap
