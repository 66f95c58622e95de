// writesync against a thread that writes a known number of times with each flag.
#include <sys/uio.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

struct Use {
  std::string name;
  int open_flags, call_flags;
  std::uint64_t writes;
  std::string counted_as;
};

const std::vector<Use> kUses = {
    {"regular", 0, 0, 9, "regular_writes"},          {"sync", O_SYNC, 0, 2, "sync_writes"},
    {"dsync", O_DSYNC, 0, 3, "dsync_writes"},        {"call-sync", 0, RWF_SYNC, 4, "sync_writes"},
    {"call-dsync", 0, RWF_DSYNC, 5, "dsync_writes"}, {"both", O_DSYNC, RWF_SYNC, 6, "sync_writes"}};

constexpr std::size_t kBytes = 4096;

void use_all(const std::string& directory) {
  alignas(kBytes) static char buffer[kBytes] = {};
  iovec part{buffer, sizeof buffer};
  for (auto& use : kUses) {
    int fd = open((directory + "/" + use.name).c_str(),
                  O_RDWR | O_CREAT | O_CLOEXEC | use.open_flags, 0600);
    ASSERT_GE(fd, 0) << directory;
    for (std::uint64_t i = 0; i < use.writes; i++) {
      EXPECT_EQ(pwritev2(fd, &part, 1, 0, use.call_flags), static_cast<ssize_t>(kBytes));
    }
    EXPECT_EQ(pread(fd, buffer, kBytes, 0), static_cast<ssize_t>(kBytes));
    close(fd);
  }
}

TOOL_TEST(Writesync, EachFlag) {
  TemporaryDirectory temporary;
  auto directory = std::filesystem::canonical(temporary.path()).string();
  auto rows =
      observe_thread("writesync --json --strict", [&] { use_all(directory); }).report().body;
  EXPECT_EQ(rows.size(), kUses.size());
  for (auto& use : kUses) {
    SCOPED_TRACE(use.name);
    auto line = line_with(rows, {{"file", directory + "/" + use.name}});
    for (auto* key : {"sync_writes", "dsync_writes", "regular_writes"})
      expect_fields(line, {{key, use.counted_as == key ? use.writes : 0}});
    expect_fields(line, {{"writes", use.writes}, {"write_bytes", use.writes * kBytes}});
  }
}

// dd prints the number of its writes.
TOOL_TEST(Writesync, DirectWritesOfACommand) {
  TemporaryDirectory directory;
  auto file = directory.path() + "/direct";
  int fd = open(file.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  if (fd < 0) throw Skip("no O_DIRECT in " + directory.path());
  close(fd);
  Strings words("--json --strict -- dd if=/dev/zero of=" + file +
                " bs=4096 count=7 conv=notrunc oflag=direct,dsync status=none");
  auto rows = Tracer("writesync", words, {.attached = false}).finish().body;
  std::erase_if(rows, [](auto& line) { return !line["file"].str().ends_with("/direct"); });
  EXPECT_EQ(sum(rows, "direct_writes"), 7u);
  EXPECT_EQ(sum(rows, "dsync_writes"), 7u);
}

TESTS_OF(writesync, .events = {{}, "fileio --count 5"},
         .stress = count_row("fileio --count {n}", 20000, "writes", "writes+copies"));

}  // namespace
}  // namespace coretap::tooltest
