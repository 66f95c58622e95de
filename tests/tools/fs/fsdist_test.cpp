// fsdist against processes that make known numbers of operations, on file systems of their own.
#include <map>

#include <unistd.h>

#include "../harness.hpp"
#include "functions.hpp"

namespace coretap::tooltest {
namespace {

/// Of the workload's rounds.
const std::map<std::string, std::uint64_t> kPerRound = {
    {"read", 4}, {"write", 3}, {"open", 2}, {"fsync", 2}, {"getattr", 1}};

std::uint64_t operations(stress::Load& load) {
  std::uint64_t per_round = 0;
  for (auto& [operation, count] : kPerRound) per_round += count;
  return load.truth("rounds") * per_round;
}

/// As /proc/filesystems names it.
std::string type_of_mount(const std::string& type) { return type == "nfs" ? "nfs4" : type; }

void expect_rounds(Report& report, const std::string& type, std::uint64_t rounds) {
  std::map<std::string, std::uint64_t> counts;
  for (auto& line : report.body) {
    if (!type.empty() && line["fs_type"].str() != type) continue;
    counts[line["operation"].str()] += line["count"].u64();
    EXPECT_GT(line["total_ns"].u64(), 0u);
  }
  for (auto& [operation, count] : kPerRound)
    EXPECT_EQ(counts[operation], count * rounds) << operation << " of " << type;
}

void operations_beside_memory(const std::string& type) {
  require_tool("fsdist");
  Workload disk("filecalls", {"--rounds", "20", "--mkfs", type}, kLinger),
      memory("filecalls", {"--rounds", "30"}, kLinger);
  auto both = disk.id() + "," + memory.id();
  Tracer all("fsdist", {"--json", "--strict", "-p", both}),
      one("fsdist", {"--json", "--strict", "-t", type, "-p", both});
  disk.release();
  memory.release();
  auto on_disk = disk.truth()["rounds"].u64(), in_memory = memory.truth()["rounds"].u64();
  auto apart = all.stop();
  expect_rounds(apart, type_of_mount(type), on_disk);
  expect_rounds(apart, "tmpfs", in_memory);
  EXPECT_EQ(apart.body.size(), 2 * kPerRound.size());
  auto of_type = one.stop();
  EXPECT_FALSE(uses_functions(apart));
  if (has_functions(type)) {
    EXPECT_TRUE(uses_functions(of_type));
  }
  expect_rounds(of_type, "", on_disk);
  EXPECT_EQ(of_type.body.size(), kPerRound.size());
}

class FsdistOn : public testing::TestWithParam<const char*> {};
TEST_P(FsdistOn, OperationsOfEach){TOOL_TEST_BODY(operations_beside_memory(
    GetParam()))} INSTANTIATE_TEST_SUITE_P(Types, FsdistOn,
                                           testing::Values("ext4", "xfs", "btrfs", "f2fs", "fuse",
                                                           "nfs"),
                                           [](auto& type) { return std::string(type.param); });

TOOL_TEST(Fsdist, TextHasTheKnownTitles) {
  require_tool("fsdist");
  Workload workload("filecalls", {"--rounds", "5"}, kLinger);
  Tracer tracer("fsdist", {"-t", "tmpfs", "-e", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "operation = read\n     usecs               : count ")) << text;
  EXPECT_TRUE(contains(text, ", count: 20\n")) << text;
}

TOOL_TEST(Fsdist, AFileSystemThatIsNotThere) {
  require_tool("fsdist");
  auto result = run({tool_path("fsdist"), "-t", "no-such-fs"});
  EXPECT_EQ(result.status, 3);
  EXPECT_TRUE(contains(result.err, "does not know the file system 'no-such-fs'")) << result.err;
}

// By the names that peers have, as a link, of file systems that most kernels have no module for.
TOOL_TEST(Fsdist, NamesOfFileSystemsWhoseModuleIsNotThere) {
  require_tool("fsdist");
  TemporaryDirectory links;
  int absent = 0;
  for (std::string type : {"zfs", "bcachefs"}) {
    SCOPED_TRACE(type);
    if (contains(slurp("/proc/filesystems"), "\t" + type + "\n")) continue;
    absent++;
    auto link = links.path() + "/" + type + "dist";
    ASSERT_EQ(::symlink(tool_path("coretap").c_str(), link.c_str()), 0);
    for (auto& command : {Strings{link}, Strings{tool_path("coretap"), type + "dist"}}) {
      auto result = run(command);
      EXPECT_EQ(result.status, 3);
      EXPECT_EQ(result.out, "");
      EXPECT_TRUE(contains(result.err, "does not know the file system '" + type + "'"))
          << result.err;
      EXPECT_TRUE(contains(result.err, "hint: load the module (modprobe " + type + ")"))
          << result.err;
    }
  }
  if (!absent) throw Skip("this kernel knows them all");
}

const DeclareTests kFsdist{{
    .name = "fsdist",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "filecalls --rounds 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "filecalls --rounds {n}",
               .events = 3000,
               .options = "-t tmpfs",
               .shown = "count",
               .truth = operations,
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
