// The directory of a flight recorder: what stays, what is linked, and what is refused.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "coretap/clock.hpp"
#include "expect.hpp"
#include "places.hpp"
#include "record/recorder.hpp"
#include "record/store.hpp"

namespace coretap::record {
namespace {

namespace fs = std::filesystem;

/// A store with tools that are not there: the test writes their segments.
struct Made {
  explicit Made(StoreOptions options, const std::string& directory) {
    options.directory = directory;
    options.say = [this](std::string_view text) { said += std::string(text) + "\n"; };
    opened = store.open(std::move(options));
  }
  void add(std::size_t tools) {
    for (std::size_t i = 0; i < tools; i++) store.add("tool" + std::to_string(i), "tool");
    for (std::size_t i = 0; i < tools; i++) {
      writers.push_back({store.segments(i), std::make_unique<Writer>()});
    }
  }
  /// Each tool ends its segment, and begins another one of that size.
  void write(std::size_t bytes) {
    std::string noise(bytes, '\0');
    for (auto& c : noise) c = static_cast<char>((random = random * 1103515245 + 12345) >> 16);
    for (auto& [segments, file] : writers) {
      file->close();
      if (!segments->begin_next(*file, monotonic_ns())) continue;
      file->put(Part::records, noise);
      file->flush();
    }
    store.settle();
  }

  Store store;
  Result<void> opened;
  std::string said;
  std::vector<std::pair<std::unique_ptr<Segments>, std::unique_ptr<Writer>>> writers;
  std::uint32_t random = 1;
};

/// As du counts: each inode once.
std::uint64_t disk_usage(const std::string& directory) {
  std::set<ino_t> seen;
  std::uint64_t bytes = 0;
  for (auto& entry : fs::recursive_directory_iterator(directory)) {
    struct stat found {};
    if (::lstat(entry.path().c_str(), &found) == 0 && seen.insert(found.st_ino).second)
      bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
  }
  return bytes;
}

std::vector<std::string> dumps_in(const std::string& directory) {
  std::vector<std::string> all;
  for (auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("20")) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

TEST(Store, ADumpIsMadeOfLinksInAFewMilliseconds) {
  const ScratchDirectory place;
  Made made({.last = 300, .after = 0, .most = 1 << 30}, place.in("store"));
  ASSERT_TRUE(made.opened) << made.opened.error().why;
  constexpr std::size_t kTools = 10, kSegments = 31;
  made.add(kTools);
  for (std::size_t i = 0; i < kSegments; i++) made.write(20'000);
  const auto began = std::chrono::steady_clock::now();
  const auto path = made.store.dump({"signal", "", true});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(took.count(), 50);
  RecordProperty("milliseconds", std::to_string(took.count()));
  const auto dumps = dumps_in(place.in("store"));
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_EQ(path, dumps[0]);
  std::size_t links = 0;
  for (auto& entry : fs::directory_iterator(dumps[0])) {
    if (entry.path().extension() != ".ctr") continue;
    struct stat there {
    }, here{};
    ASSERT_EQ(::stat(entry.path().c_str(), &there), 0);
    const auto ring = place.in("store/ring/" + entry.path().filename().string());
    ASSERT_EQ(::stat(ring.c_str(), &here), 0);
    EXPECT_EQ(there.st_ino, here.st_ino);
    EXPECT_EQ(there.st_mode & 07777, 0600u);
    links++;
  }
  EXPECT_EQ(links, kTools * kSegments);
  EXPECT_TRUE(fs::exists(dumps[0] + "/why.json"));
  made.store.end();
  EXPECT_FALSE(fs::exists(place.in("store/ring")));
  EXPECT_TRUE(fs::exists(dumps[0] + "/tool9.000031.ctr")) << "the dump stays";
}

/// Of the time that is wanted, and the current one.
TEST(Store, ADumpMayBeOfTheLastSeconds) {
  const ScratchDirectory place;
  Made made({.last = 300, .after = 3600, .most = 1 << 30}, place.in("store"));
  ASSERT_TRUE(made.opened);
  made.add(1);
  for (int i = 0; i < 3; i++) made.write(1000);
  made.store.settle();
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  for (int i = 0; i < 2; i++) made.write(1000);
  const auto segments = [&](const std::string& dump) {
    std::size_t count = 0;
    for (auto& entry : fs::directory_iterator(dump)) count += entry.path().extension() == ".ctr";
    return count;
  };
  const auto path = made.store.dump({"request", "", true, 1});
  EXPECT_LE(segments(path), 3u);
  EXPECT_GE(segments(path), 2u);
  EXPECT_NE(places::file_text(path + "/why.json").find("\"last_s\":1,"), std::string::npos);
  // A trigger that comes while it goes on wants all.
  EXPECT_EQ(made.store.dump({"oomkill", "", true}), path);
  EXPECT_EQ(segments(path), 5u);
}

TEST(Store, NeverNeedsMoreThanItsLimit) {
  const ScratchDirectory place;
  constexpr std::uint64_t kMost = 4 << 20;
  Made made({.last = 300, .after = 0, .most = kMost, .keep = 5}, place.in("store"));
  ASSERT_TRUE(made.opened);
  made.add(2);
  std::uint64_t largest = 0;
  for (int i = 0; i < 300; i++) {
    made.write(1 + (i * 7919) % 180'000);
    if (i % 3 == 0) made.store.dump({"signal", "", true});
    largest = std::max(largest, disk_usage(place.in("store")));
    ASSERT_LE(dumps_in(place.in("store")).size(), 5u);
  }
  EXPECT_LE(largest, kMost);
  EXPECT_GT(largest, kMost / 2) << "the limit is used";
  EXPECT_NE(made.said.find("is small"), std::string::npos) << made.said;
  // Its own sum agrees with du.
  EXPECT_NEAR(static_cast<double>(made.store.bytes()),
              static_cast<double>(disk_usage(place.in("store"))), 100'000);
  // The last dump can be shown: all of the ring that fits.
  EXPECT_FALSE(fs::is_empty(dumps_in(place.in("store")).back()));
}

TEST(Store, TriggersTogetherMakeOneDumpAndAStormFew) {
  const ScratchDirectory place;
  Made made({.last = 300, .after = 3600, .dumps = 1, .per = 600}, place.in("store"));
  ASSERT_TRUE(made.opened);
  made.add(1);
  made.write(100);
  made.store.dump({"psi memory some 150ms/1s", "3 %", false});
  for (int i = 0; i < 1000; i++) made.store.dump({"oomkill", "1 events", false});
  auto dumps = dumps_in(place.in("store"));
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_TRUE(dumps[0].ends_with("-psi-memory")) << dumps[0];
  made.write(200);  // after the trigger
  made.store.end();
  EXPECT_TRUE(fs::exists(dumps[0] + "/tool0.000002.ctr"));
  const auto why = places::file_text(dumps[0] + "/why.json");
  EXPECT_NE(why.find("\"complete\":true"), std::string::npos) << why;
  EXPECT_NE(why.find("oomkill"), std::string::npos) << why;

  Made storm({.last = 300, .after = 0, .dumps = 2, .per = 600}, place.in("storm"));
  storm.add(1);
  storm.write(100);
  for (int i = 0; i < 100; i++) storm.store.dump({"load > 4", "5", false});
  EXPECT_EQ(dumps_in(place.in("storm")).size(), 2u);
  EXPECT_EQ(storm.store.dumps_refused(), 98u);
  storm.store.dump({"signal", "", true});
  EXPECT_EQ(dumps_in(place.in("storm")).size(), 3u) << "the user is not refused";
}

TEST(Store, WhatIsLeftOfAKilledRunIsSaved) {
  const ScratchDirectory place;
  const auto directory = place.in("store");
  {
    Made killed({.last = 300}, directory);
    ASSERT_TRUE(killed.opened);
    killed.add(1);
    killed.write(100);
    killed.write(100);
  }
  Made next({.last = 300}, directory);
  ASSERT_TRUE(next.opened);
  const auto dumps = dumps_in(directory);
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_TRUE(dumps[0].ends_with("-interrupted"));
  EXPECT_TRUE(fs::exists(dumps[0] + "/tool0.000001.ctr"));
  EXPECT_TRUE(fs::is_empty(directory + "/ring"));
}

TEST(Store, OtherDirectoriesAreRefused) {
  const ScratchDirectory place;
  const auto refused = [&](const std::string& path) {
    Made made({}, path);
    return !made.opened;
  };
  ASSERT_EQ(::mkdir(place.in("real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink(place.in("real").c_str(), place.in("link").c_str()), 0);
  EXPECT_TRUE(refused(place.in("link")));
  EXPECT_TRUE(refused(place.in("link/")));
  EXPECT_TRUE(refused(place.in("no/parent")));
  ASSERT_EQ(::mkdir(place.in("shared").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(place.in("shared").c_str(), 0770), 0);
  EXPECT_TRUE(refused(place.in("shared")));
  if (::geteuid() == 0) {
    ASSERT_EQ(::mkdir(place.in("other").c_str(), 0700), 0);
    ASSERT_EQ(::chown(place.in("other").c_str(), 65534, 65534), 0);
    EXPECT_TRUE(refused(place.in("other")));
  }
  place.write("file", "");
  EXPECT_TRUE(refused(place.in("file")));
  // Its ring is checked, too, and its lock is no link to follow.
  ASSERT_EQ(::symlink("/tmp", place.in("real/ring").c_str()), 0);
  EXPECT_TRUE(refused(place.in("real")));
  ASSERT_EQ(::unlink(place.in("real/ring").c_str()), 0);
  ASSERT_EQ(::unlink(place.in("real/lock").c_str()), 0);
  ASSERT_EQ(::symlink("/tmp/x", place.in("real/lock").c_str()), 0);
  EXPECT_TRUE(refused(place.in("real")));
  ASSERT_EQ(::unlink(place.in("real/lock").c_str()), 0);
  Made one({}, place.in("real"));
  ASSERT_TRUE(one.opened);
  EXPECT_TRUE(refused(place.in("real"))) << "another one records there";
  Made few({.most = 100'000}, place.in("few"));
  ASSERT_TRUE(few.opened);
  few.store.add("tool", "tool");
  EXPECT_FALSE(few.store.check());
}

}  // namespace
}  // namespace coretap::record
