// The terminal that standard output may be: its size.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace coretap {

struct TerminalSize {
  int columns = 80, rows = 24;
};
/// Of the terminal behind `fd`; 80 x 24 where there is none or it does not say.
TerminalSize terminal_size(int fd = 1);

/// What text is laid out for: the terminal's columns where it is narrower than 80, else 80.
int text_columns(int fd = 1);
/// Rows of tables are cut to this: the terminal's columns, never less than 20; no limit elsewhere.
std::size_t line_limit(int fd = 1);

/// The line up to this many columns.
std::string cut_to(std::string_view line, std::size_t columns);

}  // namespace coretap
