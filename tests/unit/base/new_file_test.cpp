#include "base/new_file.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

class NewFileTest : public testing::Test {
 protected:
  std::size_t files() const { return directory_.names().size(); }
  std::string content() const { return places::file_text(a_); }
  static Result<void> write(const std::string& path, std::string_view text) {
    auto file = NewFile::create(path);
    if (!file) return file.error();
    return file->write(text);
  }
  /// The error of the creation.
  static std::string refused(const std::string& path) {
    auto file = NewFile::create(path);
    if (file) return "taken";
    EXPECT_EQ(file.error().status, kFailed);
    EXPECT_TRUE(says(file.error().what, path));
    return file.error().why;
  }
  ScratchDirectory directory_;
  const std::string a_ = directory_.in("a");
};

TEST_F(NewFileTest, AppearsWhole) {
  auto before = umask(027);
  {
    auto file = NewFile::create(a_);
    ASSERT_TRUE(file) << file.error().why;
    EXPECT_FALSE(fs::exists(a_)) << "not before it is complete";
    ASSERT_TRUE(file->write("text"));
    EXPECT_EQ(content(), "text");
  }
  umask(before);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(fs::status(a_).permissions(), fs::perms(0640)) << "0666 less the umask";
}

TEST_F(NewFileTest, AnOldOneStaysUntilThen) {
  ASSERT_TRUE(write(a_, "old"));
  {
    auto file = NewFile::create(a_);
    ASSERT_TRUE(file);
    EXPECT_EQ(content(), "old");
  }
  EXPECT_EQ(content(), "old") << "given up";
  EXPECT_EQ(files(), 1u);
  ASSERT_TRUE(write(a_, "new"));
  EXPECT_EQ(content(), "new");
}

TEST_F(NewFileTest, WhatCannotBeWrittenIsRefusedAtOnce) {
  EXPECT_EQ(refused(directory_.in("no/such/a")), strerror(ENOENT));
  EXPECT_EQ(refused(directory_.path()), strerror(EISDIR));
  EXPECT_NE(refused("/proc/a"), "taken");
  EXPECT_EQ(files(), 0u);
}

// Root could replace these.
TEST_F(NewFileTest, DevicesPipesAndLinksAreWrittenThrough) {
  auto device = fs::status("/dev/null");
  ASSERT_TRUE(write("/dev/null", "text"));
  EXPECT_EQ(fs::status("/dev/null").type(), device.type());

  const auto target = directory_.write("target", "a longer text than the new one");
  const auto link = directory_.in("link"), pipe = directory_.in("pipe");
  fs::create_symlink(target, link);
  ASSERT_TRUE(write(link, "text"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(places::file_text(target), "text");

  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refused(pipe), strerror(ENXIO)) << "it has no reader";
  int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::string large(1 << 20, 'x'), got;
  auto file = NewFile::create(pipe);
  ASSERT_TRUE(file);
  fcntl(reader, F_SETFL, 0);
  std::thread reads([&] { got = rest_of(reader); });
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

TEST_F(NewFileTest, NamesThatAreTakenAreLeftAloneAndMovedOnesCleanedUpOnce) {
  {
    auto given_up = NewFile::create(a_);
    NewFile other = std::move(*given_up), third;
    third = std::move(other);
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
  auto one = NewFile::create(a_), two = NewFile::create(a_);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(files(), 2u);
  EXPECT_TRUE(one->write("one"));
  EXPECT_TRUE(two->write("two"));
  EXPECT_EQ(content(), "two");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace coretap
