// execsnoop against a program that knows what it ran and what it could not run.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// What 4096 bytes of arguments hold, each with a terminator; the last may be cut.
Strings taken(const Strings& hex) {
  Strings words;
  std::size_t room = 4096;
  for (auto& word : hex) {
    if (!room) break;
    auto bytes = unhex(word);
    words.push_back(in_json(bytes.substr(0, room)));
    room -= std::min(room, bytes.size() + 1);
  }
  return words;
}

std::vector<Json> children_of(const Report& report, std::uint64_t pid) {
  std::vector<Json> own;
  for (auto& event : report.body)
    if (event["ppid"].u64() == pid) own.push_back(event);
  return own;
}

TOOL_TEST(Execsnoop, EveryTryWithItsArguments) {
  require_tool("execsnoop");
  Workload workload("runner", {"--count", "0"});
  Tracer all("execsnoop", {"--json", "-x"}), good("execsnoop", {"--json"});
  Tracer named("execsnoop", {"--json", "-l", "two words"});
  Tracer few("execsnoop", {"--json", "--max-args", "2", "-q"});
  Tracer csv("execsnoop", {"--csv", "--max-args", "2", "-q"});
  Tracer text("execsnoop", {"-T", "-t", "-U", "-M", "-n", "runner"});
  workload.release();
  auto truth = workload.truth();
  auto pid = truth["pid"].u64();
  auto tries = truth["tries"].items();
  auto report = all.stop();
  EXPECT_EQ(report.lost("lost"), 0u);
  auto events = children_of(report, pid);
  ASSERT_EQ(events.size(), tries.size());
  for (std::size_t i = 0; i < tries.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = events[i];
    EXPECT_EQ(event["pid"].u64(), tries[i]["pid"].u64());
    EXPECT_EQ(event["tid"].u64(), tries[i]["pid"].u64());
    EXPECT_EQ(event["ret"].i64(), -tries[i]["error"].i64());
    EXPECT_EQ(event["comm"].str(), "runner");
    EXPECT_EQ(event["parent_comm"].str(), "runner");
    EXPECT_EQ(event["file"].str(), unhex(tries[i]["file_hex"].str()));
    EXPECT_EQ(event["error"].is_null(), event["ret"].i64() == 0);
    std::size_t bytes = 0;
    auto args = tries[i]["args_hex"].strings();
    for (auto& word : args) bytes += unhex(word).size() + 1;
    EXPECT_EQ(event["incomplete"].boolean(), bytes > 4096);
    EXPECT_EQ(event["args"].strings(), taken(args));
  }
  EXPECT_GE(report.lost("truncated"), 1u);
  EXPECT_EQ(children_of(good.stop(), pid).size(), truth["execs"].u64());
  auto lines = children_of(named.stop(), pid);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["pid"].u64(), tries[0]["pid"].u64());
  auto first = children_of(few.stop(), pid).at(0);
  EXPECT_EQ(first["args"].strings(), (Strings{"--child", "two words"}));
  EXPECT_TRUE(first["incomplete"].boolean());
  EXPECT_TRUE(contains(csv.stop_text(), "\"\"\"--child\"\" \"\"two words\"\" ...\"\n"));
  auto shown = text.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  EXPECT_TRUE(shown.starts_with("TIME ")) << shown;
  for (auto* word : {"TIME(s)", "UID", "PCOMM", "PARENT", "PID", "PPID", "RET", "ARGS"})
    EXPECT_TRUE(contains(shown, word)) << word;
  EXPECT_TRUE(contains(
      shown, unhex(tries[0]["file_hex"].str()) + " two words  \\x1b]0;x\\x07\\x0a\"\\\\xff\n"))
      << shown;
}

TOOL_TEST(Execsnoop, OfOneParent) {
  require_tool("execsnoop");
  Workload wanted("runner", {"--count", "5"}), other("runner", {"--count", "5"});
  Tracer tracer("execsnoop", {"--json", "-x", "-P", wanted.id()});
  wanted.release();
  other.release();
  auto tries = wanted.truth()["tries"].items().size();
  other.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.body.size(), 5 + tries);
  for (auto& event : report.body) {
    EXPECT_EQ(event["ppid"].u64(), static_cast<std::uint64_t>(wanted.pid()));
    EXPECT_LT(event["cpu"].u64(), static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_CONF)));
  }
}

// What a script is called by is not its interpreter's file.
TOOL_TEST(Execsnoop, FilesInText) {
  require_tool("execsnoop");
  TemporaryDirectory directory;
  auto script = directory.path() + "/script";
  std::ofstream(script) << "#!/bin/sh -e\nexec /bin/echo of the script\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  auto result = run({tool_path("execsnoop"), "--output", directory.path() + "/lines", "--", "sh",
                     "-c", script + " word; exec env echo by name"});
  ASSERT_EQ(result.status, 0) << result.err;
  auto lines = slurp(directory.path() + "/lines");
  EXPECT_TRUE(contains(lines, " /bin/sh -e " + script + " word\n")) << lines;
  EXPECT_TRUE(contains(lines, " /bin/echo of the script\n")) << lines;
  EXPECT_TRUE(contains(lines, "/env echo by name\n")) << lines;
  EXPECT_FALSE(contains(lines, " 0 env echo")) << lines;
}

TOOL_TEST(Execsnoop, LosesNothingInAStorm) {
  require_tool("execsnoop");
  const std::uint64_t count = slowness() > 3 ? 100 : 600;
  Workload workload("runner", {"--count", std::to_string(count)});
  Tracer tracer("execsnoop", {"--json"});
  Tracer nobody("execsnoop", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.lost("lost"), 0u);
  auto events = children_of(report, truth["pid"].u64());
  auto storm = std::count_if(events.begin(), events.end(), [](auto& e) {
    return e["args"].strings() == Strings{"--child", "storm"};
  });
  EXPECT_EQ(static_cast<std::uint64_t>(storm), count);
  EXPECT_TRUE(nobody.stop().body.empty());
}

TOOL_TEST(Execsnoop, FollowsACommand) {
  require_tool("execsnoop");
  Tracer tracer("execsnoop", {"--json", "--", workload_path("runner"), "--count", "3"},
                {.attached = false});
  ASSERT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  auto report = parse_report(tracer.process().out(), tracer.process().err());
  ASSERT_TRUE(report.truth);
  EXPECT_EQ(report.body.size(), 1 + 3 + (*report.truth)["execs"].u64());
}

const DeclareTests kExecsnoop{{
    .name = "execsnoop",
    .events = {"-x -U -T", "hostile --count 2 --action exec"},
    .stress = {.workload = "runner --count {n}",
               .events = 600,
               .options = "-x",
               .truth = "storm+execs+fails",
               .tiny = "--ring-size 4096",
               .by_cgroup = true},
    .long_run = {{.arguments = "-x"}},
}};

}  // namespace
}  // namespace coretap::tooltest
