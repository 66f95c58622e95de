// A manual page in mdoc(7), line by line.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

  /// Prose: marks up options, paths, pages and `-- COMMAND`, one line per sentence. Paragraphs are
  /// separated by empty lines.
  void prose(std::string_view text);

  void item(std::string_view line) { macro(fmt::format("It {}", line)); }
  void item(std::string_view line, std::string_view fragment) {
    item(line);
    prose(sentence(fragment));
  }
  void begin(std::string_view list) { macro(fmt::format("Bl {}", list)); }
  void end() { macro("El"); }
  /// A list of options with their descriptions.
  void options(const std::vector<Option>& options, std::string_view list = "-tag -width Ds");
  void example(std::string_view command);
  /// The meaning of a command line, and the line.
  void example(std::string_view meaning, std::string_view command);
  /// Literal text, line by line.
  void literal(std::string_view text);

  /// Ends the page with references to others: "coretap 8".
  std::string finish(std::initializer_list<std::string_view> see_also);

 private:
  void paragraph(std::string_view text);

  std::string out_;
};

/// "Fl p Ar PID , Fl -pid Ar PID".
std::string option_item(const Option& option);

}  // namespace coretap
