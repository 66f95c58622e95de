// bashreadline against lines that a workload types on a private terminal.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kBash[] = "/bin/bash";
const Strings kTypist{"typist", "--last", ": \"\\xc3\\xa9\\xff\""};
constexpr char kLast[] = ": \"\xc3\xa9\xef\xbf\xbd\"";  // \xff is not valid UTF-8

void require_bash() {
  require_tool("bashreadline");
  if (!std::filesystem::exists(kBash)) throw Skip("no bash");
}

std::string line_of(std::size_t i, std::size_t length) {
  auto line = ": line " + std::to_string(i) + " ";
  return line + std::string(length - line.size(), 'x');
}

void expect_lines(const Report& report, const Json& truth) {
  auto own = report.of_process(truth["shell_pid"].u64());
  auto lines = truth["lines"].u64(), length = truth["length"].u64();
  ASSERT_EQ(own.size(), lines + 1) << "the last one is another, and the end is none";
  for (std::size_t i = 0; i < lines; i++)
    EXPECT_EQ(own[i]["command"].str(), line_of(i, length).substr(0, 4095));
  EXPECT_EQ(own.back()["command"].str(), kLast);
}

TOOL_TEST(Bashreadline, LinesAsTyped) {
  require_bash();
  const Strings json = "bashreadline --json --strict";
  auto seen = observe_all(
      {json, json + "-s" + kBash, json + "--comm bash", json + "-u 54321", "bashreadline"}, kTypist,
      {});
  for (std::size_t tool : {0, 1, 2}) expect_lines(seen.report(tool), seen.truth);
  EXPECT_TRUE(seen.report(3).body.empty());
  EXPECT_TRUE(safe_for_terminals(seen.text(4)));
  expect_contains(seen.text(4), {" : line 4 xxxxxxxxxxx\n"});
}

TOOL_TEST(Bashreadline, LongLines) {
  require_bash();
  auto whole = observe("bashreadline --json --strict", kTypist + "--lines 3 --length 4095", {});
  expect_lines(whole.report(), whole.truth);
  auto cut = observe("bashreadline --json", kTypist + "--lines 2 --length 6000", {});
  expect_lines(cut.report(), cut.truth);
  EXPECT_EQ(cut.report().lost("truncated"), 2u);
}

TOOL_TEST(Bashreadline, EveryBashThatRuns) {
  require_bash();
  TemporaryDirectory directory;
  auto copy = directory.path() + "/bash";
  std::filesystem::copy_file(kBash, copy);
  Process running(Spawn{.argv = {copy, "--norc", "-c", "echo ready; read x"}, .stdin_pipe = true});
  running.await([](auto& out, auto&) { return contains(out, "ready"); });
  auto first = Workload::of(kTypist + "--shell" + copy, {}), second = Workload::of(kTypist, {});
  Tracer all("bashreadline", "--json"), system("bashreadline", Strings{"--json", "-s", kBash});
  first.release();
  auto truth = first.truth();
  second.release();
  auto other = second.truth();
  auto report = all.stop(), of_system = system.stop();
  expect_lines(report, truth);
  expect_lines(report, other);
  EXPECT_TRUE(of_system.of_process(truth["shell_pid"].u64()).empty());
  expect_lines(of_system, other);
}

TOOL_TEST(Bashreadline, ProgramsWithoutReadline) {
  require_bash();
  expect_refused({"bashreadline", "--shared", workload_path("sleeper")},
                 {"has no function readline"}, 3);
  expect_refused("bashreadline -s /nowhere/bash");
}

TESTS_OF(bashreadline, .events = {"-e", "typist --lines 3"}, .alone = true,
         .stress = event_row("typist --lines {n}", 100,
                             [](stress::Load& load) { return load.truth("lines") + 1; })
                       .with_copies(12)
                       .with_children());

}  // namespace
}  // namespace coretap::tooltest
