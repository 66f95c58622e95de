// biotop against a process that makes a known number of requests; and the screen on a real
// pseudo-terminal.
#include "disks.hpp"
#include "tools/on_terminal.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Biotop, CountsTheRequestsOfAProcess) {
  auto seen = on_loop({"biotop --json --strict -p {pid} -d {disk}", "biotop -p {pid} 10"},
                      "--count 40 --size 16k");
  auto report = seen.report();
  ASSERT_FALSE(report.body.empty());
  expect_sums(report, seen.truth, {{"ios", "count"}});
  EXPECT_EQ(report.sum("bytes"), seen.number("count") * seen.number("size"));
  EXPECT_GT(report.sum("time_ns"), 0u);
  EXPECT_LE(report.sum("time_ns"), seen.number("took_ns"));
  for (auto& line : report.body) {
    expect_fields(line, {{"pid", seen.pid}, {"comm", "blockio"}, {"operation", "W"}});
    expect_same(line, seen.truth, {"disk"});
  }
  expect_contains(
      seen.text(1),
      {" loadavg: ", "PID     COMM             D  MAJ MIN DISK       I/O  Kbytes    AVGms\n"});
  EXPECT_FALSE(contains(seen.text(1), "\033")) << "no terminal, no control sequences";
}

constexpr std::string_view kShowCursor = "\033[?25h", kHideCursor = "\033[?25l", kHome = "\033[H";

TOOL_TEST(BiotopScreen, RedrawsInPlaceAndEndsWithQ) {
  OnTerminal top("biotop", 60, 10, {"0.2"});
  EXPECT_TRUE(contains(top.read_until("Kbytes"), kHideCursor));
  top.read_until(kHome);
  EXPECT_FALSE(top.restored()) << "keys are read singly";
  top.quit();
  EXPECT_TRUE(top.restored());
  EXPECT_TRUE(contains(top.seen(), kShowCursor));
}

TOOL_TEST(BiotopScreen, FitsTheTerminalAndPauses) {
  OnTerminal top("biotop", 30, 8, {"0.2"});
  top.read_until("PID     COMM             D  MA");
  top.resize(100, 30);
  top.read_until("AVGms");  // beyond the 30th column
  top.press("p");
  top.read_until("[paused]");
  top.press("rs ");
  top.read_until(kHome);
  top.quit();
}

TOOL_TEST(BiotopScreen, TheTerminalIsRestoredByEverySignal) {
  for (int number : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) {
    SCOPED_TRACE(number);
    OnTerminal top("biotop", 80, 24, {"0.2"});
    top.read_until("AVGms");
    kill(top.pid(), number);
    auto status = top.status();
    if (number == SIGSEGV || number == SIGABRT)
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number);
    else
      EXPECT_EQ(status, 0);
    EXPECT_TRUE(top.restored());
    EXPECT_TRUE(contains(top.seen(), kShowCursor));
  }
}

TOOL_TEST(BiotopScreen, NoclearPrintsBlocks) {
  OnTerminal top("biotop", 100, 30, "-C 0.2 2");
  EXPECT_EQ(top.status(), 0);
  EXPECT_FALSE(contains(top.seen(), kHome));
  EXPECT_TRUE(contains(top.seen(), "loadavg"));
}

TESTS_OF(biotop, .events = {{}, "blockio --count 5"}, .stress = writes_to_loop("ios"));

}  // namespace
}  // namespace coretap::tooltest
