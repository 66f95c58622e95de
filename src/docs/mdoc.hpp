// A manual page in mdoc(7), line by line.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "coretap/options.hpp"

namespace coretap {

/// Text on a macro line: escapes words that look like macros.
std::string inline_words(std::string_view text);

/// A fragment from the tables as a sentence; a leading name or number is not capitalized.
std::string sentence(std::string_view fragment);

class Page {
 public:
  /// Writes title, section (7, 8), and the line of NAME.
  Page(std::string_view name, int section, std::string_view summary);

  void macro(std::string_view line) { out_ += fmt::format(".{}\n", line); }
  void section(std::string_view title) { macro(fmt::format("Sh {}", title)); }

  /// Prose: marks up options, paths, pages and `-- COMMAND`, one line per sentence.
  void prose(std::string_view text);

  void item(std::string_view line) { macro(fmt::format("It {}", line)); }
  void begin(std::string_view list) { macro(fmt::format("Bl {}", list)); }
  void end() { macro("El"); }
  void example(std::string_view command);
  /// Literal text, line by line.
  void literal(std::string_view text);

  std::string finish() { return std::move(out_); }

 private:
  void paragraph(std::string_view text);

  std::string out_;
};

/// "Fl p Ar PID , Fl -pid Ar PID".
std::string option_item(const Option& option);

}  // namespace coretap
