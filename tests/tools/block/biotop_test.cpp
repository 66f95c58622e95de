// biotop against a process that makes a known number of requests; and the screen on a real
// pseudo-terminal.
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <chrono>
#include <csignal>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Biotop, CountsTheRequestsOfAProcess) {
  require_tool("biotop");
  Workload workload("blockio", {"--make", "loop", "--count", "40", "--size", "16k"}, kLinger);
  Tracer tracer("biotop",
                {"--json", "--strict", "-p", workload.id(), "-d", workload.ready()["disk"].str()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_FALSE(report.body.empty());
  EXPECT_EQ(report.sum("ios"), truth["count"].u64());
  EXPECT_EQ(report.sum("bytes"), truth["count"].u64() * truth["size"].u64());
  EXPECT_GT(report.sum("time_ns"), 0u);
  EXPECT_LE(report.sum("time_ns"), truth["took_ns"].u64());
  for (auto& line : report.body) {
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(line["comm"].str(), "blockio");
    EXPECT_EQ(line["operation"].str(), "W");
    EXPECT_EQ(line["disk"].str(), truth["disk"].str());
  }
}

TOOL_TEST(Biotop, BlocksHaveTheKnownColumns) {
  require_tool("biotop");
  Workload workload("blockio", {"--make", "loop", "--op", "read", "--count", "10"}, kLinger);
  Tracer tracer("biotop", {"-p", workload.id(), "10"});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find(" loadavg: "), std::string::npos) << text;
  EXPECT_NE(text.find("PID     COMM             D  MAJ MIN DISK       I/O  Kbytes    AVGms\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('\033'), std::string::npos) << "no terminal, no control sequences";
}

TOOL_TEST(Biotop, SortKeysAreChecked) {
  auto result = run({tool_path("biotop"), "-s", "nothing"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("ios"), std::string::npos) << result.err;
}

// --- the screen
// ------------------------------------------------------------------------------------

/// biotop on a terminal of its own.
class OnTerminal {
 public:
  OnTerminal(unsigned short columns, unsigned short rows, const Strings& options) {
    winsize size{rows, columns, 0, 0};
    auto path = tool_path("biotop");
    std::vector<char*> argv{path.data()};
    auto copies = options;
    for (auto& word : copies) argv.push_back(word.data());
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
  void press(char key) const { (void)!write(master_, &key, 1); }
  void resize(unsigned short columns, unsigned short rows) const {
    winsize size{rows, columns, 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
  }

  /// What is written until it has this; fails after the patience.
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

  /// Its end; what it still writes is read.
  int status() {
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) read_some();
    read_some();
    pid_ = -1;
    return status;
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
  require_tool("biotop");
  OnTerminal top(60, 10, {"0.2"});
  auto first = top.read_until("Kbytes");
  EXPECT_NE(first.find(kHideCursor), std::string::npos);
  top.read_until(kHome);
  EXPECT_FALSE(top.restored()) << "keys are read singly";
  top.press('q');
  EXPECT_EQ(top.status(), 0);
  EXPECT_TRUE(top.restored());
  EXPECT_NE(top.seen().find(kShowCursor), std::string::npos);
}

TOOL_TEST(BiotopScreen, FitsTheTerminal) {
  require_tool("biotop");
  OnTerminal top(30, 8, {"0.2"});
  top.read_until("PID     COMM             D  MA");
  top.resize(100, 30);
  top.read_until("AVGms");  // beyond the 30th column
  top.press('q');
  EXPECT_EQ(top.status(), 0);
}

TOOL_TEST(BiotopScreen, PausesAndGoesOn) {
  require_tool("biotop");
  OnTerminal top(100, 30, {"0.2"});
  top.read_until("AVGms");
  top.press('p');
  top.read_until("[paused]");
  top.press('r');
  top.press('s');
  top.press(' ');
  top.read_until(kHome);
  top.press('q');
  EXPECT_EQ(top.status(), 0);
}

TOOL_TEST(BiotopScreen, TheTerminalIsRestoredByEverySignal) {
  require_tool("biotop");
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
    EXPECT_NE(top.seen().find(kShowCursor), std::string::npos);
  }
}

TOOL_TEST(BiotopScreen, NoclearPrintsBlocks) {
  require_tool("biotop");
  OnTerminal top(100, 30, {"-C", "0.2", "2"});
  EXPECT_EQ(top.status(), 0);
  EXPECT_EQ(top.seen().find(kHome), std::string::npos);
  EXPECT_NE(top.seen().find("loadavg"), std::string::npos);
}

const DeclareTests kBiotop{{
    .name = "biotop",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "blockio --count 5"},
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .shown = "ios",
               .truth = "count",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
