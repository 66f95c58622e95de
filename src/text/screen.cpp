#include "text/screen.hpp"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include "text/terminal.hpp"

namespace coretap {

namespace {

constexpr std::string_view kHideCursor = "\033[?25l", kShowCursor = "\033[?25h";
constexpr std::string_view kHome = "\033[H", kClearLine = "\033[K", kClearBelow = "\033[J";
constexpr std::string_view kClearAll = "\033[2J";
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

termios before;  // for signal handlers to restore

void put(std::string_view text) { (void)!::write(STDOUT_FILENO, text.data(), text.size()); }

/// Calls only functions that are safe in a signal handler (signal-safety(7)).
void restore() {
  tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
  put(kShowCursor);
}

void on_crash(int number) {
  restore();
  signal(number, SIG_DFL);
  raise(number);
}

void set_crash_handlers(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  for (int number : kCrashes) sigaction(number, &action, nullptr);
}

void single_keys() {
  auto raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  put(kHideCursor);
}

}  // namespace

bool Screen::possible() {
  auto* kind = getenv("TERM");
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && kind && *kind &&
         std::string_view(kind) != "dumb" && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void Screen::open() {
  if (open_ || tcgetattr(STDIN_FILENO, &before)) return;
  set_crash_handlers(on_crash);
  single_keys();
  put(kClearAll);
  open_ = true;
}

void Screen::close() {
  if (!open_) return;
  open_ = false;
  restore();
  set_crash_handlers(SIG_DFL);
  put(fmt::format("\033[{};1H{}", drawn_ + 1, kClearBelow));
}

void Screen::reopen() {
  if (!open_) return;
  single_keys();
  put(kClearAll);
}

std::vector<int> Screen::wakes() const {
  return open_ ? std::vector<int>{STDIN_FILENO} : std::vector<int>();
}

std::vector<int> Screen::signals() const {
  return open_ ? std::vector<int>{SIGWINCH, SIGCONT} : std::vector<int>();
}

std::string Screen::take_keys() const {
  if (!open_) return {};
  char keys[64];
  pollfd waiting{STDIN_FILENO, POLLIN, 0};
  if (poll(&waiting, 1, 0) <= 0) return {};
  auto n = ::read(STDIN_FILENO, keys, sizeof keys);
  return n > 0 ? std::string(keys, static_cast<std::size_t>(n)) : std::string();
}

std::string Screen::picture(const std::vector<std::string>& lines) {
  auto size = terminal_size();
  auto rows =
      std::min<std::size_t>(lines.size(), static_cast<std::size_t>(std::max(1, size.rows - 1)));
  std::string text(kHome);
  for (std::size_t i = 0; i < rows; i++)
    text += fmt::format("{}{}\r\n", cut_to(lines[i], static_cast<std::size_t>(size.columns)),
                        kClearLine);
  text += kClearBelow;
  drawn_ = static_cast<int>(rows);
  return text;
}

bool ScreenKeys::press(char key) {
  quit |= key == 'q' || key == 'Q';
  if (key == 'p' || key == ' ') paused = !paused;
  if (key == 'r') reversed = !reversed;
  return quit;
}

}  // namespace coretap
