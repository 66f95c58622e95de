// --help and the text that all documentation shares, generated from the tool's table.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/tool.hpp"

namespace coretap {

std::string help_text(const Tool& tool);
/// "[OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ARGS...]"
std::string synopsis(const Tool& tool);
/// "-d, --disk DISK"
std::string option_words(const Option& option);
/// A line of help: the syntax, and beside it the description.
std::string help_row(std::string words, std::string_view doc);
/// Separated by empty lines.
std::vector<std::string_view> paragraphs_in(std::string_view text);
/// Wraps text into lines of at most `columns`, each indented.
std::string wrap(std::string_view text, int indent, int columns = 80);
/// The condition of a `when` in words: "with --queued", "without --queued", "with --pids or
/// --tids", "with a filter by task"; empty if there is none.
std::string condition_words(std::string_view when);

/// An argument on the command line without a dash.
struct Argument {
  std::string_view words;
  std::string doc;
};
std::vector<Argument> arguments(const Tool& tool);

/// All options in the order in which users look for them; no group is empty.
struct OptionGroup {
  std::string_view title;
  std::vector<Option> options;
};
std::vector<OptionGroup> option_groups(const Tool& tool);

struct ExitStatus {
  int status;
  std::string_view meaning;
};
const std::vector<ExitStatus>& exit_statuses();

}  // namespace coretap
