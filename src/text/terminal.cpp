#include "text/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace coretap {

namespace {
constexpr int kUsual = 80;
constexpr int kNarrowest = 20;
}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row) return {};
  return {std::max<int>(size.ws_col, kNarrowest), size.ws_row};
}

int text_columns(int fd) { return std::min(terminal_size(fd).columns, kUsual); }

std::size_t line_limit(int fd) {
  return isatty(fd) ? static_cast<std::size_t>(terminal_size(fd).columns) : std::string::npos;
}

std::string cut_to(std::string_view line, std::size_t columns) {
  if (line.size() <= columns) return std::string(line);
  return fmt::format("{:.{}}", line, columns);
}

}  // namespace coretap
