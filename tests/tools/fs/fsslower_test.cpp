// fsslower against a process that says which operation it made where.
#include <unistd.h>

#include <algorithm>

#include "../harness.hpp"
#include "functions.hpp"

namespace coretap::tooltest {
namespace {

void expect_call(const Json& event, const Json& call, const std::string& type) {
  auto ret = call["ret"].i64();
  bool moves = call["offset"].i64() >= 0;
  EXPECT_EQ(event["fs_type"].str(), type == "nfs" ? "nfs4" : type);
  EXPECT_EQ(event["comm"].str(), "filecalls");
  EXPECT_EQ(event["operation"].str(), call["operation"].str());
  EXPECT_EQ(event["file"].str(), call["path"].str());
  ASSERT_EQ(event["bytes"].is_null(), !moves);
  ASSERT_EQ(event["offset_bytes"].is_null(), !moves);
  ASSERT_EQ(event["error"].is_null(), ret >= 0);
  if (moves) {
    EXPECT_EQ(event["offset_bytes"].i64(), call["offset"].i64());
    EXPECT_EQ(event["bytes"].i64(), std::max<std::int64_t>(ret, 0));
  }
  if (ret < 0) {
    EXPECT_EQ(event["error"].str(), "EBADF");
  }
  EXPECT_GT(event["latency_ns"].u64(), 0u);
}

/// Does a function of the file system hear of it? The kernel refuses some calls by itself, and
/// directories have functions of their own.
bool reaches_functions(const Json& call, const std::string& directory) {
  return call["ret"].i64() >= 0 && call["path"].str() != directory;
}

/// What functions see besides the scene's calls: the file that these write to, stat by path, and on
/// some kernels what is done with a directory.
void expect_second(const Json& event, const std::string& directory) {
  auto operation = event["operation"].str(), file = event["file"].str();
  EXPECT_TRUE(operation == "G" || file == directory ||
              (operation == "W" && file == directory + "/other"))
      << operation << " " << file;
}

/// With functions: these calls in their order.
void expect_functions(const Report& report, std::size_t first, const std::vector<Json>& calls,
                      const std::string& type) {
  auto directory = calls.front()["path"].str();
  directory.resize(directory.rfind('/'));
  std::size_t at = first, more = 0;
  for (auto& call : calls) {
    if (!reaches_functions(call, directory)) continue;
    SCOPED_TRACE(call["operation"].str() + " " + call["path"].str());
    auto same = [&](const Json& event) {
      return event["operation"].str() == call["operation"].str() &&
             event["file"].str() == call["path"].str() &&
             (call["offset"].i64() < 0 || event["offset_bytes"].i64() == call["offset"].i64());
    };
    for (; at < report.body.size() && !same(report.body[at]); at++, more++)
      expect_second(report.body[at], directory);
    ASSERT_LT(at, report.body.size());
    expect_call(report.body[at++], call, type);
  }
  for (; at < report.body.size(); at++, more++) expect_second(report.body[at], directory);
  EXPECT_LE(more, 4u);
}

void every_operation_with_its_file(const std::string& type) {
  require_tool("fsslower");
  // It lingers, as what it does to unmount NFS would be seen, too.
  Workload workload("filecalls", {"--rounds", "1", "--scene", "--mkfs", type}, kLinger),
      other("filecalls", {"--rounds", "5"});
  auto both = workload.id() + "," + other.id();
  Tracer tracer("fsslower", {"--json", "--strict", "0", "-t", type, "-p", both});
  workload.release();
  other.release();
  other.truth();
  auto truth = workload.truth();
  auto calls = truth["scene"].items();
  auto report = tracer.stop();
  constexpr std::size_t kRound = 12;  // operations before the scene
  if (uses_functions(report)) return expect_functions(report, kRound, calls, type);
  ASSERT_EQ(report.body.size(), kRound + calls.size());
  for (std::size_t i = 0; i < calls.size(); i++) {
    SCOPED_TRACE(i);
    expect_call(report.body[kRound + i], calls[i], type);
  }
}

class FsslowerOn : public testing::TestWithParam<const char*> {};
TEST_P(FsslowerOn, EveryOperationWithItsFile){TOOL_TEST_BODY(every_operation_with_its_file(
    GetParam()))} INSTANTIATE_TEST_SUITE_P(Types, FsslowerOn,
                                           testing::Values("ext4", "xfs", "btrfs", "f2fs", "fuse",
                                                           "nfs"),
                                           [](auto& type) { return std::string(type.param); });

TOOL_TEST(Fsslower, OnlyWhatIsSlow) {
  require_tool("fsslower");
  Workload workload("fileio", {"--count", "100", "--delay", "150"}, kLinger);
  Tracer tracer("fsslower", {"--json", "--strict", "-m", "100", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& slow = report.body[0];
  EXPECT_EQ(slow["file"].str(), truth["data"].str());
  EXPECT_EQ(slow["operation"].str(), "R");
  EXPECT_EQ(slow["fs_type"].str(), "tmpfs");
  EXPECT_GE(slow["latency_ns"].u64(), 140'000'000u);
  EXPECT_GE(report.ledger["filtered"].u64(), truth["returned"].u64() - 1);
}

TOOL_TEST(Fsslower, TextHasTheKnownColumns) {
  require_tool("fsslower");
  EXPECT_EQ(header_of("fsslower", {"-t", "tmpfs"}),
            (Strings{"TIME", "COMM", "PID", "T", "BYTES", "OFF_KB", "LAT(ms)", "FILENAME"}));
  EXPECT_EQ(header_of("fsslower", {}),
            (Strings{"TIME", "COMM", "PID", "FS", "T", "BYTES", "OFF_KB", "LAT(ms)", "FILENAME"}));
  EXPECT_EQ(run({tool_path("fsslower"), "-m", "1", "2"}).status, 2);
}

// By the names that peers have, as a link, of file systems that most kernels have no module for.
TOOL_TEST(Fsslower, NamesOfFileSystemsWhoseModuleIsNotThere) {
  require_tool("fsslower");
  TemporaryDirectory links;
  int absent = 0;
  for (std::string type : {"zfs", "bcachefs"}) {
    SCOPED_TRACE(type);
    if (contains(slurp("/proc/filesystems"), "\t" + type + "\n")) continue;
    absent++;
    auto link = links.path() + "/" + type + "slower";
    ASSERT_EQ(::symlink(tool_path("coretap").c_str(), link.c_str()), 0);
    for (auto& command : {Strings{link}, Strings{tool_path("coretap"), type + "slower"}}) {
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

const DeclareTests kFsslower{{
    .name = "fsslower",
    .events = {"0", "fileio --count 5"},
    .stress = {.workload = "fileio --count {n}",
               .events = 10000,
               .options = "0 -t tmpfs",
               .truth = "returned",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "1"}},
}};

}  // namespace
}  // namespace coretap::tooltest
