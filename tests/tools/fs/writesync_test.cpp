// writesync against a thread that writes a known number of times with each flag.
#include <fcntl.h>
#include <sys/uio.h>

#include <filesystem>
#include <map>

#include "../harness.hpp"
#include "io_thread.hpp"

namespace coretap::tooltest {
namespace {

struct Use {
  std::string name;
  int open_flags, call_flags;
  std::uint64_t writes;
  const char* counted_as;
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
  require_tool("writesync");
  TemporaryDirectory directory;
  IoThread thread([&] { use_all(directory.path()); });
  Tracer tracer("writesync", {"--json", "--strict", "-t", thread.id()});
  thread.finish();
  auto report = tracer.stop();
  EXPECT_EQ(report.body.size(), kUses.size());
  std::map<std::string, Json> lines;
  for (auto& line : report.body) lines[line["file"].str()] = line;
  for (auto& use : kUses) {
    auto path = std::filesystem::canonical(directory.path()).string() + "/" + use.name;
    ASSERT_TRUE(lines.contains(path)) << path;
    auto& line = lines[path];
    for (auto* key : {"sync_writes", "dsync_writes", "regular_writes"})
      EXPECT_EQ(line[key].u64(), std::string(key) == use.counted_as ? use.writes : 0)
          << use.name << " " << key;
    EXPECT_EQ(line["writes"].u64(), use.writes);
    EXPECT_EQ(line["write_bytes"].u64(), use.writes * kBytes);
  }
}

// dd says itself how often it wrote.
TOOL_TEST(Writesync, DirectWritesOfACommand) {
  require_tool("writesync");
  TemporaryDirectory directory;
  auto file = directory.path() + "/direct";
  int fd = open(file.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  if (fd < 0) throw Skip("no O_DIRECT in " + directory.path());
  close(fd);
  Tracer tracer("writesync",
                {"--json", "--strict", "--", "dd", "if=/dev/zero", "of=" + file, "bs=4096",
                 "count=7", "conv=notrunc", "oflag=direct,dsync", "status=none"},
                {.attached = false});
  auto report = tracer.finish();
  std::uint64_t direct = 0, dsync = 0;
  for (auto& line : report.body) {
    if (!line["file"].str().ends_with("/direct")) continue;
    direct += line["direct_writes"].u64();
    dsync += line["dsync_writes"].u64();
  }
  EXPECT_EQ(direct, 7u);
  EXPECT_EQ(dsync, 7u);
}

TOOL_TEST(Writesync, TheKnownColumns) {
  require_tool("writesync");
  EXPECT_EQ(header_of("writesync", {"0.1", "1"}),
            (Strings{"PID", "COMM", "SYNC", "DSYNC", "REGULAR", "DIRECT", "W_Kb", "FILE"}));
}

const DeclareTests kWritesync{{
    .name = "writesync",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "fileio --count 5"},
    .stress = {.workload = "fileio --count {n}",
               .events = 20000,
               .shown = "writes",
               .truth = "writes+copies",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
