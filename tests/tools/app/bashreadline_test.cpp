// bashreadline against lines that a workload types on a terminal of its own.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kBash[] = "/bin/bash";
constexpr char kLast[] = ": \"\xc3\xa9\xef\xbf\xbd\"";  // \xff is no UTF-8

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
  Workload workload("typist", {"--last", ": \"\\xc3\\xa9\\xff\""});
  Tracer json("bashreadline", {"--json", "--strict"}), text("bashreadline", {});
  Tracer by_path("bashreadline", {"--json", "--strict", "-s", kBash});
  Tracer named("bashreadline", {"--json", "--strict", "--comm", "bash"});
  Tracer nobody("bashreadline", {"--json", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  expect_lines(json.stop(), truth);
  expect_lines(by_path.stop(), truth);
  expect_lines(named.stop(), truth);
  EXPECT_TRUE(nobody.stop().body.empty());
  auto shown = text.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  EXPECT_TRUE(contains(shown, " : line 4 xxxxxxxxxxx\n")) << shown;
}

TOOL_TEST(Bashreadline, LongLines) {
  require_bash();
  Workload workload("typist",
                    {"--lines", "3", "--length", "4095", "--last", ": \"\\xc3\\xa9\\xff\""});
  Tracer whole("bashreadline", {"--json", "--strict"});
  workload.release();
  auto typed = workload.truth();
  expect_lines(whole.stop(), typed);
  Workload longer("typist",
                  {"--lines", "2", "--length", "6000", "--last", ": \"\\xc3\\xa9\\xff\""});
  Tracer cut("bashreadline", {"--json"});
  longer.release();
  auto truth = longer.truth();
  auto report = cut.stop();
  expect_lines(report, truth);
  EXPECT_EQ(report.lost("truncated"), 2u);
}

TOOL_TEST(Bashreadline, EveryBashThatRuns) {
  require_bash();
  std::string directory = "/tmp/coretap-bash-XXXXXX";
  if (!::mkdtemp(directory.data())) throw std::runtime_error("mkdtemp");
  auto copy = directory + "/bash";
  std::filesystem::copy_file(kBash, copy);
  {
    Process running(
        Spawn{.argv = {copy, "--norc", "-c", "echo ready; read x"}, .stdin_pipe = true});
    running.await([](auto& out, auto&) { return contains(out, "ready"); });
    Workload first("typist", {"--shell", copy, "--last", ": \"\\xc3\\xa9\\xff\""});
    Workload second("typist", {"--last", ": \"\\xc3\\xa9\\xff\""});
    Tracer all("bashreadline", {"--json"});
    Tracer system("bashreadline", {"--json", "-s", kBash});
    first.release();
    auto truth = first.truth();
    second.release();
    auto other = second.truth();
    auto report = all.stop(), of_system = system.stop();
    expect_lines(report, truth);
    expect_lines(report, other);
    EXPECT_TRUE(of_system.of_process(truth["shell_pid"].u64()).empty());
    expect_lines(of_system, other);
    running.close_stdin();
    running.wait();
  }
  std::filesystem::remove_all(directory);
}

TOOL_TEST(Bashreadline, ColumnsAndRefusals) {
  require_bash();
  EXPECT_EQ(header_of("bashreadline", {}), (Strings{"TIME", "PID", "COMMAND"}));
  EXPECT_EQ(header_of("bashreadline", {"-U", "-e"}),
            (Strings{"TIME", "UID", "PID", "COMM", "COMMAND"}));
  auto refused = run({tool_path("bashreadline"), "--shared", workload_path("sleeper")});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_TRUE(contains(refused.err, "has no function readline")) << refused.err;
  EXPECT_EQ(run({tool_path("bashreadline"), "-s", "/nowhere/bash"}).status, 2);
}

const DeclareTests kBashreadline{{
    .name = "bashreadline",
    .events = {"-e", "typist --lines 3"},
    .stress = {.workload = "typist --lines {n}",
               .events = 100,
               .truth = [](stress::Load& load) { return load.truth("lines") + 1; },
               .tiny = "--ring-size 4096",
               .copies = 12,
               .by_cgroup = true},
}};

}  // namespace
}  // namespace coretap::tooltest
