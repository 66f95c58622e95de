// filelife against a program that makes, renames and removes files in known ways.
#include <unistd.h>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

struct Ended {
  std::string call, path;
};

/// Files of the scene that ended, in their order.
std::vector<Ended> ended(const Json& truth) {
  std::vector<Ended> all;
  for (auto& call : truth["scene"].items()) {
    if (!call["ended"].boolean()) continue;
    auto to = unhex(call["to_hex"].str());
    all.push_back({call["call"].str(), to.empty() ? unhex(call["path_hex"].str()) : to});
  }
  return all;
}

void expect_all(const Report& report, const Json& truth, const std::string& directory) {
  auto files = truth["files"].u64();
  auto scene = ended(truth);
  ASSERT_EQ(report.body.size(), files + scene.size());
  EXPECT_EQ(report.body.size(), truth["gone"].u64());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = report.body[i];
    EXPECT_EQ(event["pid"].u64(), truth["pid"].u64());
    EXPECT_GT(event["inode"].u64(), 0u);
    auto expected = i < files ? Ended{"unlinkat", "renamed"} : scene[i - files];
    EXPECT_EQ(event["call"].str(), expected.call);
    EXPECT_EQ(event["file"].str(), directory + expected.path);
  }
  EXPECT_GE(report.body[files]["age_ns"].u64(), 150'000'000u);
}

// By renames, hard links and what is replaced; in memory, and on a disk where the directory is.
TOOL_TEST(Filelife, EveryFileThatEnds) {
  require_tool("filelife");
  char directory[4096];
  ASSERT_NE(::getcwd(directory, sizeof directory), nullptr);
  Strings arguments{"--files", "20", "--scene", "--directories", "--age", "150"};
  Strings on_disk = arguments;
  on_disk.insert(on_disk.end(), {"--in", directory});
  Workload memory("removals", arguments), disk("removals", on_disk);
  Tracer first("filelife", {"--json", "--strict", "-p", memory.id()});
  Tracer full("filelife", {"--json", "--strict", "-F", "-p", disk.id()});
  Tracer young("filelife", {"--json", "--strict", "-m", "149", "-p", memory.id()});
  memory.release();
  disk.release();
  auto truth = memory.truth();
  expect_all(first.stop(), truth, "");
  expect_all(full.stop(), disk.truth(), disk.truth()["dir"].str() + "/");
  auto some = young.stop();
  EXPECT_EQ(some.body.size(), truth["gone"].u64() - 1);
  for (auto& event : some.body) EXPECT_LE(event["age_ns"].u64(), 149'000'000u);
}

// What io_uring creates and removes is no system call of this kind: its name alone is known.
TOOL_TEST(Filelife, OfIoUring) {
  require_tool("filelife");
  Workload workload("ringio", {"--rounds", "1", "--lives", "20"}, kLinger);
  Tracer tracer("filelife", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  auto hooks = report.header["hooks"].items();
  if (hooks.at(0)["attached"].strings().at(0).find("security_file_open") == std::string::npos)
    throw Skip("this kernel allows no programs at functions; without them io_uring is not seen");
  ASSERT_EQ(report.body.size(), 20u);
  auto data = workload.ready()["data"].str();
  for (auto& event : report.body) {
    EXPECT_EQ(event["call"].str(), "other");
    EXPECT_EQ(event["file"].str(), data.substr(data.rfind('/') + 1) + ".short-lived");
    EXPECT_GT(event["age_ns"].u64(), 0u);
  }
}

TOOL_TEST(Filelife, Text) {
  require_tool("filelife");
  EXPECT_EQ(header_of("filelife", {}), (Strings{"TIME", "PID", "COMM", "AGE(s)", "FILE"}));
  Workload workload("removals", {"--files", "1", "--scene", "--age", "250"});
  Tracer tracer("filelife", {"-n", "emovals"});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(safe_for_terminals(text));
  EXPECT_TRUE(contains(text, " removals         0.2")) << text;
  EXPECT_TRUE(contains(text, " renamed\n")) << text;
}

const DeclareTests kFilelife{{
    .name = "filelife",
    .events = {{}, "removals --files 3"},
    .stress = {.workload = "removals --files {n}",
               .events = 10000,
               .truth = "gone",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
