#include "coretap/disks.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

struct Device {
  std::string name;
  unsigned major = 0, minor = 0;
  std::uint32_t number() const { return major << 20 | minor; }
  std::string numbers() const { return std::to_string(major) + ":" + std::to_string(minor); }
};

/// Disks and partitions of this machine, from sysfs; there may be none.
std::vector<Device> devices(bool partitions) {
  std::vector<Device> all;
  std::error_code error;
  for (auto& entry : fs::directory_iterator("/sys/class/block", error)) {
    if (fs::exists(entry.path() / "partition") != partitions) continue;
    Device d{entry.path().filename()};
    char colon = 0;
    std::ifstream(entry.path() / "dev") >> d.major >> colon >> d.minor;
    if (colon == ':') all.push_back(d);
  }
  return all;
}

TEST(Disks, FoundByNameAndNumbers) {
  auto all = devices(false);
  if (all.empty()) GTEST_SKIP() << "no disks here";
  for (auto& d : all) {
    auto shown = d.name;
    std::replace(shown.begin(), shown.end(), '!', '/');
    for (auto& spelling : {d.name, shown, "/dev/" + shown, d.numbers()}) {
      auto found = find_disk(spelling);
      ASSERT_TRUE(found) << spelling << ": " << found.error().what;
      EXPECT_EQ(*found, d.number()) << spelling;
    }
    EXPECT_EQ(disk_name(d.number()), shown);
  }
}

// Requests belong to whole disks: a filter by a partition would match nothing.
TEST(Disks, PartitionsAreRefused) {
  auto all = devices(true);
  if (all.empty()) GTEST_SKIP() << "no partitions here";
  for (auto& d : all)
    for (auto& spelling : {d.name, "/dev/" + d.name, d.numbers()}) {
      auto found = find_disk(spelling);
      ASSERT_FALSE(found) << spelling;
      EXPECT_EQ(found.error().status, kUsage);
      EXPECT_NE(found.error().what.find("partition"), std::string::npos) << found.error().what;
    }
}

TEST(Disks, OthersAreRefusedWithAHint) {
  std::vector<std::string_view> all{"\0"sv, "vda\0vda"sv};
  for (auto* bad : {"",
                    ".",
                    "..",
                    "/",
                    "/dev/",
                    "/dev",
                    "no-such-disk",
                    "../../etc/passwd",
                    "4096:0",
                    "8:",
                    ":8",
                    "8:0:0",
                    "8:0x",
                    " 8:0",
                    "1:-1",
                    "4095:1048575",
                    "-1:1",
                    "%s%n",
                    "\x1b[2J",
                    "/etc/passwd",
                    "loop0\n",
                    "0:1048576",
                    "99999999999999999999:0"})
    all.push_back(bad);
  for (auto bad : all) {
    auto found = find_disk(bad);
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error().status, kUsage) << bad;
    EXPECT_FALSE(found.error().hint.empty()) << bad;
  }
  EXPECT_FALSE(find_disk(std::string(100000, 'a')));
}

TEST(Disks, NumbersWithoutADiskStayNumbers) {
  EXPECT_EQ(disk_name(4095u << 20 | 1048575), "4095:1048575");
  EXPECT_EQ(disk_name(UINT32_MAX), "4095:1048575");
}

TEST(Disks, RequestsOfAllQueues) {
  if (!devices(false).empty()) {
    EXPECT_GT(block_requests(), 0u);
    EXPECT_GT(disks(), 0u);
  }
  EXPECT_LT(block_requests(), 1u << 30);
}

}  // namespace
}  // namespace coretap
