// The size of the terminal, if standard output is one.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace coretap {

struct TerminalSize {
  int columns = 80, rows = 24;
};
/// Of the terminal at `fd`; 80 x 24 if there is none or its size is unknown.
TerminalSize terminal_size(int fd = 1);

/// The width for text: the terminal's columns if it is narrower than 80, else 80.
int text_columns(int fd = 1);
/// The limit for table rows: the terminal's columns, at least 20; no limit for other outputs.
std::size_t line_limit(int fd = 1);

/// The first columns of the line, at most this many.
std::string cut_to(std::string_view line, std::size_t columns);

}  // namespace coretap
