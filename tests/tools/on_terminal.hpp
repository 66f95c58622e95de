// A tool that draws on a terminal, and the keys that it is sent.
#pragma once
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <utmp.h>

#include "harness.hpp"

namespace coretap::tooltest {

/// A tool on a private terminal.
class OnTerminal {
 public:
  OnTerminal(const std::string& tool, unsigned short columns, unsigned short rows,
             const Strings& options) {
    require_tool(tool);
    winsize size{rows, columns, 0, 0};
    auto words = Strings{tool_path(tool)} + options;
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

}  // namespace coretap::tooltest
