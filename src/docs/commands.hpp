// coretap's commands other than tools: one table for dispatch, --help, coretap(8) and
// completion.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/options.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// (Command is the command after --: run/command.hpp.)
struct OwnCommand {
  std::string_view name;
  std::string_view arguments = {};    ///< "WORD..."; empty: it accepts options only
  std::size_t least = 0, most = 0;    ///< minimum and maximum number of words
  std::string_view summary;           ///< one line, no full stop
  std::string_view description = {};  ///< details beyond the summary
  std::vector<Option> options = {};   ///< other than --help
  std::vector<Example> examples = {};
  /// Text of its manual page about rights and output. Empty: coretap(8) describes the command, and
  /// it has no link.
  std::string_view rights = {}, output = {}, json = {};
  /// Its words include options that are not in this table.
  bool passes_options = false;
  Complete complete = Complete::nothing;         ///< for the words
  std::vector<Completion> (*words)() = nullptr;  ///< the same, if the words are a closed list
  int (*run)(const Config&, const std::vector<std::string>& words) = nullptr;
};

const std::vector<OwnCommand>& commands();
const OwnCommand* find_command(std::string_view name);

/// The options in the table and --help.
std::vector<Option> options_of(const OwnCommand& command);

std::string help_text(const OwnCommand& command);
/// The text of `coretap --help`.
std::string overview();

/// Runs a command; -> its exit status, or nullopt if the first argument is not a command.
std::optional<int> run_command(const std::vector<std::string>& arguments);

}  // namespace coretap
