// The command that runs a tool, for usage lines, examples and hints; and the tool that a name runs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/tool.hpp"

namespace coretap {

/// "coretap runqlat", or "ct-runqlat" if the process was started by such a link.
std::string command_of(std::string_view tool);

/// A command line that begins with the tool's name, as the user would type it.
std::string as_typed(std::string_view tool, std::string_view line);

/// The manual page's name in packages: "coretap-runqlat". Other suites have pages with the bare
/// name.
std::string page_of(std::string_view tool);

/// Call it first in main: the process was started by a link of this name to this tool.
void started_by_link(std::string_view link, std::string_view tool);

/// The result of looking up a name: a tool, and the option that this alias implies.
struct Called {
  const Registered* tool = nullptr;
  std::string_view name = {};    ///< the tool's name, or an alias
  std::string_view option = {};  ///< empty for the tool's name
};
/// Looks up a tool's name or alias. Without a tool: no such name.
Called called(std::string_view name);
/// The tool, which then knows the name. Precondition: there is one.
Tool build(const Called& call);
/// All names and aliases, tool by tool, each tool's name first.
std::vector<Called> all_names();
/// Tools of the source tree that are not in this build (CORETAP_ONLY); empty: all are.
const std::vector<std::string_view>& tools_left_out();
bool is_left_out(std::string_view tool);
/// "2 of 123 tools are in this build", and how to get the others; empty: all are.
std::string tools_in_build();
/// The error for a word that is not a tool's name: for a tool left out of the build how to get it,
/// else a similar name. `what`: "there is no tool" or another description of the word.
Error no_such_tool(std::string_view word, std::string_view what = "there is no tool",
                   std::vector<std::string_view> known = {});
/// The options of a condition (Config::holds): "--pids or --tids", "a filter by task".
std::string condition_options(std::string_view when);
/// "fsdist --type=ext4"; for a tool's own name its summary.
std::string meaning_of(const Called& called);
/// "ext4dist (--type=ext4), xfsdist (--type=xfs)"; empty if there are no aliases.
std::string other_names_of(const Tool& tool);

}  // namespace coretap
