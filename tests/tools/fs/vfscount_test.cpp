// vfscount against a program that makes a known number of calls on files.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Vfscount, FunctionsThatAreCalled) {
  require_tool("vfscount");
  Workload workload("filecalls", {"--rounds", "50"}, kLinger);
  Tracer tracer("vfscount", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto rounds = truth["rounds"].u64();
  std::map<std::string, std::uint64_t> calls;
  for (auto& row : report.body) {
    EXPECT_TRUE(row["target"].str().starts_with("vfs_")) << row["target"].str();
    calls[row["target"].str()] += row["count"].u64();
  }
  // In each round two, by read and pread, and two writes; at the end it prints some lines, and
  // waits for input.
  EXPECT_GE(calls["vfs_read"], 2 * rounds);
  EXPECT_LE(calls["vfs_read"], 2 * rounds + 2);
  EXPECT_GE(calls["vfs_write"], 2 * rounds + 1);
  EXPECT_LE(calls["vfs_write"], 2 * rounds + 20);
}

TOOL_TEST(Vfscount, Columns) {
  require_tool("vfscount");
  auto text = run({tool_path("vfscount"), "0.2"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("FUNC"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("vfs_read"), std::string::npos) << text.out;
}

// Where functions cannot be traced the user learns what to use.
TOOL_TEST(Vfscount, WhatToUseInstead) {
  auto text = run({tool_path("vfscount"), "0.1"});
  if (text.status == 0) throw Skip("functions can be traced here");
  EXPECT_EQ(text.status, 3);
  EXPECT_TRUE(contains(text.err, "vfsstat")) << text.err;
}

const DeclareTests kVfscount{{
    .name = "vfscount",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "filecalls --rounds 5"},
    .stress = {.workload = "filecalls --rounds {n}",
               .events = 5000,
               .shown =
                   [](const Json& line) {
                     return line["target"].str() == "vfs_read" ? line["count"].u64() : 0;
                   },
               .truth = [](stress::Load& load) { return 2 * load.truth("rounds"); },
               .slack = 2},
    .long_run = {{.arguments = "60"}},
}};

}  // namespace
}  // namespace coretap::tooltest
