#include "run/tool_links.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

class Link : public testing::Test {
 protected:
  Link() {
    for (auto* directory : {"usr/sbin", "usr/local/bin"}) fs::create_directories(root_ / directory);
    file(executable_);
  }
  /// Replaces a link.
  static void replace(const fs::path& link, const fs::path& target) {
    fs::remove(link);
    fs::create_symlink(target, link);
  }
  static fs::path file(const fs::path& path) {
    fs::remove(path);
    std::ofstream(path) << "text";
    return path;
  }
  static WordSet names(const fs::path& directory) {
    WordSet all;
    for (auto& entry : fs::directory_iterator(directory)) all.insert(entry.path().filename());
    return all;
  }

  std::size_t tools_ = link_names().size();
  ScratchDirectory directory_;
  const fs::path root_ = directory_.path(), executable_ = root_ / "usr/sbin/coretap",
                 bin_ = root_ / "usr/local/bin";
};

TEST(ToolCalled, ByTheWholeNameOrAfterTheLastDash) {
  ASSERT_TRUE(find_tool("runqlat"));
  for (auto name : {"runqlat", "ct-runqlat", "my-own-runqlat"})
    EXPECT_EQ(tool_called(name).tool, find_tool("runqlat")) << name;
  for (auto name : {"ext4dist", "ct-ext4dist"}) {
    EXPECT_EQ(tool_called(name).tool, find_tool("fsdist")) << name;
    EXPECT_EQ(tool_called(name).option, "--type=ext4") << name;
  }
  // A login shell's name starts with a dash. Names without a tool run commands with links.
  for (auto name : {"coretap", "coretap-static", "runqlat-", "-runqlat", "ctrunqlat", "-", "",
                    "tplist", "ct-tplist"})
    EXPECT_EQ(tool_called(name).tool, nullptr) << name;
  for (auto name : {"tplist", "ct-tplist"}) EXPECT_EQ(tool_called(name).name, "tplist") << name;
  for (auto name : {"list", "ct-doctor", "tplist-"}) EXPECT_EQ(tool_called(name).name, "") << name;
}

TEST_F(Link, MakesANameForEachTool) {
  auto made = make_links(executable_, root_ / "usr/sbin", "");
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->made, tools_);
  EXPECT_EQ(made->there, 0u);
  EXPECT_EQ(names(root_ / "usr/sbin").size(), tools_ + 1);
  EXPECT_EQ(fs::read_symlink(root_ / "usr/sbin/runqlat"), "coretap");
  EXPECT_EQ(fs::read_symlink(root_ / "usr/sbin/bpflist"), "coretap");
  // The second time only missing links are created.
  fs::remove(root_ / "usr/sbin/runqlat");
  made = make_links(executable_, root_ / "usr/sbin", "");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->made, 1u);
  EXPECT_EQ(made->there, tools_ - 1);
}

TEST_F(Link, LeadsThereFromAnyDirectoryWhereverTheTreeIs) {
  ASSERT_TRUE(make_links(executable_, bin_, "ct-"));
  auto link = root_ / "usr/local/bin/ct-runqlat";
  EXPECT_EQ(fs::read_symlink(link), "../../sbin/coretap");
  EXPECT_TRUE(fs::equivalent(link, executable_));
  // A directory that is itself a link.
  fs::create_directory_symlink("local/bin", root_ / "usr/names");
  ASSERT_TRUE(make_links(executable_, root_ / "usr/names", ""));
  EXPECT_TRUE(fs::equivalent(root_ / "usr/names/runqlat", executable_));
}

TEST_F(Link, WhatIsNotOursStaysAndNothingIsMade) {
  file(bin_ / "runqlat");
  fs::create_symlink("nowhere", bin_ / "biolatency");
  auto before = names(bin_);
  auto made = make_links(executable_, bin_, "");
  ASSERT_FALSE(made);
  EXPECT_TRUE(says(made.error().what, "biolatency, runqlat"));
  EXPECT_EQ(names(bin_), before);
  EXPECT_EQ(fs::file_size(bin_ / "runqlat"), 4u);
  EXPECT_TRUE(make_links(executable_, bin_, "ct-"));
}

TEST_F(Link, NoSuchDirectory) {
  EXPECT_FALSE(make_links(executable_, root_ / "none", ""));
  EXPECT_FALSE(make_links(executable_, executable_, ""));
  EXPECT_FALSE(remove_links(executable_, root_ / "none", {}));
}

TEST_F(Link, RemovesOnlyLinksToTheExecutableThatAreCalledAfterTools) {
  ASSERT_TRUE(make_links(executable_, bin_, ""));
  ASSERT_TRUE(make_links(executable_, bin_, "ct-"));
  auto other = file(root_ / "usr/sbin/other");
  for (auto name : {"opensnoop", "ct-opensnoop"}) replace(bin_ / name, other);
  file(bin_ / "runqlat");
  fs::create_symlink(executable_, bin_ / "tap");

  auto prefixed = remove_links(executable_, bin_, "ct-");
  ASSERT_TRUE(prefixed);
  EXPECT_EQ(*prefixed, tools_ - 1);
  auto removed = remove_links(executable_, bin_, {});
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, tools_ - 2);
  EXPECT_EQ(names(bin_), (WordSet{"opensnoop", "ct-opensnoop", "runqlat", "tap"}));
  EXPECT_TRUE(fs::exists(executable_));
}

TEST_F(Link, TheRecordNamesEachDirectoryOnce) {
  auto record = root_ / "state/links";
  ASSERT_TRUE(record_directory(record, root_ / "usr/sbin"));
  EXPECT_FALSE(fs::exists(root_ / "state")) << "no package, no record";
  fs::create_directory(root_ / "state");
  for (int i = 0; i < 2; i++) {
    ASSERT_TRUE(record_directory(record, root_ / "usr/sbin"));
    ASSERT_TRUE(record_directory(record, root_ / "usr/local/../local/bin"));
  }
  const auto all = lines_of(places::file_text(record));
  const WordSet lines(all.begin(), all.end());
  EXPECT_EQ(lines.size(), all.size());
  auto real = fs::canonical(root_);
  EXPECT_EQ(lines, (WordSet{real / "usr/sbin", real / "usr/local/bin"}));
  EXPECT_FALSE(record_directory(record, root_ / "none"));
  fs::create_directory(root_ / "a\nb");
  EXPECT_FALSE(record_directory(record, root_ / "a\nb"));
}

TEST_F(Link, RemovesAllThatTheRecordNames) {
  auto record = root_ / "state/links", odd = root_ / "odd place";
  for (auto& directory : {root_ / "state", odd}) fs::create_directory(directory);
  ASSERT_TRUE(make_links(executable_, odd, "ct-"));
  ASSERT_TRUE(record_directory(record, odd));
  ASSERT_TRUE(make_links(executable_, bin_, ""));
  file(odd / "ct-runqlat");
  auto other = file(root_ / "usr/sbin/other");
  replace(odd / "ct-opensnoop", other);
  std::ofstream(record, std::ios::app) << "/no/such/place\nrelative\n";
  auto removed = remove_all_links(executable_, {bin_}, record);
  ASSERT_TRUE(removed) << removed.error().what;
  EXPECT_EQ(*removed, 2 * tools_ - 2);
  EXPECT_EQ(names(odd), (WordSet{"ct-opensnoop", "ct-runqlat"}));
  EXPECT_TRUE(names(bin_).empty());
  EXPECT_FALSE(fs::exists(record));
}

TEST_F(Link, ARecordThatOthersCanWriteIsRefused) {
  auto record = root_ / "state/links", odd = root_ / "odd";
  for (auto& directory : {root_ / "state", odd}) fs::create_directory(directory);
  for (auto& directory : {bin_, odd}) ASSERT_TRUE(make_links(executable_, directory, ""));
  ASSERT_TRUE(record_directory(record, odd));
  fs::permissions(record, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(record_directory(record, bin_));
  EXPECT_FALSE(remove_all_links(executable_, {bin_}, record));
  EXPECT_TRUE(names(bin_).empty()) << "the usual directories do not depend on it";
  EXPECT_EQ(names(odd).size(), tools_);
  replace(record, file(root_ / "elsewhere"));
  EXPECT_FALSE(remove_all_links(executable_, {bin_}, record));
}

}  // namespace
}  // namespace coretap
