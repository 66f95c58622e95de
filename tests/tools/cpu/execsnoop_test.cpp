// execsnoop against a program that records which commands it ran and which failed.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// The arguments that fit in 4096 bytes, each with a terminator; the last may be truncated.
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

TOOL_TEST(Execsnoop, EveryTryWithItsArguments) {
  auto seen = observe_all({"execsnoop --json -x",
                           "execsnoop --json",
                           {"execsnoop", "--json", "-l", "two words"},
                           "execsnoop --json --max-args 2 -q",
                           "execsnoop --csv --max-args 2 -q",
                           "execsnoop -T -t -U -M -n runner"},
                          "runner --count 0", {});
  auto children = [&](std::size_t tool) {
    return lines_with(seen.report(tool).body, {{"ppid", seen.pid}});
  };
  auto tries = seen.truth["tries"].items();
  auto report = seen.report(0);
  EXPECT_EQ(report.lost("lost"), 0u);
  auto events = children(0);
  ASSERT_EQ(events.size(), tries.size());
  for (std::size_t i = 0; i < tries.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = events[i];
    expect_fields(event, {{"pid", tries[i]["pid"].u64()},
                          {"tid", tries[i]["pid"].u64()},
                          {"ret", -tries[i]["error"].i64()},
                          {"comm", "runner"},
                          {"parent_comm", "runner"},
                          {"file", unhex(tries[i]["file_hex"].str())}});
    EXPECT_EQ(event["error"].is_null(), event["ret"].i64() == 0);
    std::size_t bytes = 0;
    auto args = tries[i]["args_hex"].strings();
    for (auto& word : args) bytes += unhex(word).size() + 1;
    EXPECT_EQ(event["incomplete"].boolean(), bytes > 4096);
    EXPECT_EQ(event["args"].strings(), taken(args));
  }
  EXPECT_GE(report.lost("truncated"), 1u);
  EXPECT_EQ(children(1).size(), seen.truth["execs"].u64());
  ASSERT_EQ(children(2).size(), 1u);
  expect_fields(children(2)[0], {{"pid", tries[0]["pid"].u64()}});
  auto first = children(3).at(0);
  EXPECT_EQ(first["args"].strings(), (Strings{"--child", "two words"}));
  EXPECT_TRUE(first["incomplete"].boolean());
  expect_contains(seen.text(4), {"\"\"\"--child\"\" \"\"two words\"\" ...\"\n"});
  auto& shown = seen.text(5);
  EXPECT_TRUE(safe_for_terminals(shown));
  EXPECT_TRUE(shown.starts_with("TIME ")) << shown;
  expect_contains(
      shown, {"TIME(s)", "UID", "PCOMM", "PARENT", "PID", "PPID", "RET", "ARGS",
              unhex(tries[0]["file_hex"].str()) + " two words  \\x1b]0;x\\x07\\x0a\"\\\\xff\n"});
}

TOOL_TEST(Execsnoop, OfOneParent) {
  Workload other("runner", "--count 5");
  Scene scene("runner --count 5", {});
  scene.trace("execsnoop --json -x -P {pid}");
  other.release();
  auto seen = scene.finish();
  other.truth();
  EXPECT_EQ(seen.report().body.size(), 5 + seen.truth["tries"].items().size());
  for (auto& event : seen.report().body) {
    expect_fields(event, {{"ppid", seen.pid}});
    EXPECT_LT(event["cpu"].i64(), ::sysconf(_SC_NPROCESSORS_CONF));
  }
}

// A script's command name is not its interpreter's file.
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
  expect_contains(lines, {" /bin/sh -e " + script + " word\n", " /bin/echo of the script\n",
                          "/env echo by name\n"});
  EXPECT_FALSE(contains(lines, "  env echo")) << lines;
}

// --line matches what the column ARGS shows, and what the program got as its name.
TOOL_TEST(Execsnoop, TextInLines) {
  require_tool("execsnoop");
  for (auto& [text, found] : std::vector<std::pair<std::string, bool>>{
           {"/env -i /bin/true", true}, {"env -i /bin/true", true}, {"unlike-any-other", false}}) {
    SCOPED_TRACE(text);
    auto result =
        run({tool_path("execsnoop"), "-l", text, "--", "sh", "-c", "env -i /bin/true; exit 0"});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(contains(result.out, "/env -i /bin/true\n"), found) << result.out;
  }
}

TESTS_OF(execsnoop, .events = {"-x -U -T", "hostile --count 2 --action exec"},
         .stress = event_row("runner --count {n}", 600, "storm+execs+fails", "-x").with_children(),
         .long_run = {{.arguments = "-x"}});

}  // namespace
}  // namespace coretap::tooltest
