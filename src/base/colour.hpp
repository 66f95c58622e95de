// Colours on terminals, used sparingly: errors, titles of columns, losses in the ledger.
#pragma once
#include <string>
#include <string_view>

namespace coretap {

enum class ColourMode {
  automatic,  ///< on a terminal, unless NO_COLOR is set (https://no-color.org) or TERM is dumb
  always,
  never,
};
/// For the whole process (--color).
void set_colour_mode(ColourMode mode);

enum class Paint { error, title, loss };

/// The text unchanged, or with escape sequences where the output behind `fd` supports colours. A
/// trailing newline stays outside them.
std::string painted(int fd, Paint paint, std::string_view text);

}  // namespace coretap
