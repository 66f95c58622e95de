// The commands of coretap beside its tools: one table for dispatch, --help, coretap(8) and
// completion.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.hpp"
#include "coretap/options.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// (Command is the command after --: run/command.hpp.)
struct OwnCommand {
  std::string_view name;
  std::string_view arguments = {};    ///< "WORD..."; empty: it takes options only
  std::size_t least = 0, most = 0;    ///< how many words
  std::string_view summary;           ///< one line, no full stop
  std::string_view description = {};  ///< what the summary does not say
  std::vector<Option> options = {};   ///< beside --help
  std::vector<Example> examples = {};
  /// What its own manual page says of rights and of what it prints. Empty: coretap(8) describes it,
  /// and it has no link of its own.
  std::string_view rights = {}, output = {}, json = {};
  Complete complete = Complete::nothing;         ///< for the words
  std::vector<Completion> (*words)() = nullptr;  ///< the same, where they are a closed list
  int (*run)(const Config&, const std::vector<std::string>& words) = nullptr;
};

const std::vector<OwnCommand>& commands();
const OwnCommand* find_command(std::string_view name);

/// Those of the table and --help.
std::vector<Option> options_of(const OwnCommand& command);

std::string help_text(const OwnCommand& command);
/// What `coretap --help` prints.
std::string overview();

/// The exit status, if the first argument is a command.
std::optional<int> run_command(const std::vector<std::string>& arguments);

}  // namespace coretap
