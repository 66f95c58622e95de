// biotop against a process that makes a known number of requests; and the screen on a real
// pseudo-terminal.
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <utmp.h>

#include "disks.hpp"

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

/// biotop on a private terminal.
class OnTerminal {
 public:
  OnTerminal(unsigned short columns, unsigned short rows, const Strings& options) {
    require_tool("biotop");
    winsize size{rows, columns, 0, 0};
    auto words = Strings{tool_path("biotop")} + options;
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // The test keeps the other end open, so that the terminal's settings can be read afterwards.
    if (openpty(&master_, &slave_, nullptr, nullptr, &size)) throw std::runtime_error("openpty");
    tcgetattr(slave_, &before_);
    pid_ = fork();
    if (pid_ == 0) {
      setenv("TERM", "xterm", 1);
      login_tty(slave_);
      execv(argv[0], argv.data());
      _exit(126);
    }
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
    close(slave_);
  }

  pid_t pid() const { return pid_; }
  void press(std::string_view keys) const { (void)!write(master_, keys.data(), keys.size()); }
  void resize(unsigned short columns, unsigned short rows) const {
    winsize size{rows, columns, 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
  }

  /// Reads output until it contains this; fails after the timeout.
  std::string read_until(std::string_view wanted) {
    auto deadline = std::chrono::steady_clock::now() + kPatience;
    auto from = seen_.size();
    while (seen_.find(wanted, from) == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "no '" << wanted << "' in: " << seen_.substr(from);
        break;
      }
      read_some();
    }
    return seen_.substr(from);
  }

  /// Waits for the exit; reads the remaining output.
  int status() {
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) read_some();
    read_some();
    pid_ = -1;
    return status;
  }

  void quit() {
    press("q");
    EXPECT_EQ(status(), 0);
  }

  bool restored() const {
    termios now{};
    tcgetattr(slave_, &now);
    return now.c_lflag == before_.c_lflag;
  }
  const std::string& seen() const { return seen_; }

 private:
  void read_some() {
    pollfd waiting{master_, POLLIN, 0};
    char buffer[4096];
    if (poll(&waiting, 1, 100) > 0)
      if (auto n = read(master_, buffer, sizeof buffer); n > 0)
        seen_.append(buffer, static_cast<std::size_t>(n));
  }

  int master_ = -1, slave_ = -1;
  pid_t pid_ = -1;
  termios before_{};
  std::string seen_;
};

constexpr std::string_view kShowCursor = "\033[?25h", kHideCursor = "\033[?25l", kHome = "\033[H";

TOOL_TEST(BiotopScreen, RedrawsInPlaceAndEndsWithQ) {
  OnTerminal top(60, 10, {"0.2"});
  EXPECT_TRUE(contains(top.read_until("Kbytes"), kHideCursor));
  top.read_until(kHome);
  EXPECT_FALSE(top.restored()) << "keys are read singly";
  top.quit();
  EXPECT_TRUE(top.restored());
  EXPECT_TRUE(contains(top.seen(), kShowCursor));
}

TOOL_TEST(BiotopScreen, FitsTheTerminalAndPauses) {
  OnTerminal top(30, 8, {"0.2"});
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
    OnTerminal top(80, 24, {"0.2"});
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
  OnTerminal top(100, 30, "-C 0.2 2");
  EXPECT_EQ(top.status(), 0);
  EXPECT_FALSE(contains(top.seen(), kHome));
  EXPECT_TRUE(contains(top.seen(), "loadavg"));
}

TESTS_OF(biotop, .events = {{}, "blockio --count 5"}, .stress = writes_to_loop("ios"));

}  // namespace
}  // namespace coretap::tooltest
