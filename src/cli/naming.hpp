// What the user types to run a tool, for usage lines, examples and hints; and what a name runs.
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

/// The manual page as packages install it: "coretap-runqlat". Other suites have pages by the bare
/// name.
std::string page_of(std::string_view tool);

/// To be called first in main: the process was started by a link of this name to this tool.
void started_by_link(std::string_view link, std::string_view tool);

/// What somebody calls with a name: a tool, and the option that this name of it means.
struct Called {
  const Registered* tool = nullptr;
  std::string_view name = {};    ///< the tool's own name, or its other name
  std::string_view option = {};  ///< empty with its own name
};
/// By a tool's own name or one of its other names. Without a tool: there is no such name.
Called called(std::string_view name);
/// All names, tool by tool, each tool's own name first.
std::vector<Called> all_names();
/// Tools of the tree that are not in this build (CORETAP_ONLY); none: it has all of them.
const std::vector<std::string_view>& tools_left_out();
bool is_left_out(std::string_view tool);
/// "2 of 123 tools are in this build", and how to get the others; empty: it has all of them.
std::string tools_in_build();
/// The error of a word that is no name of a tool: of one that was left out how to get it, else a
/// name that is near. `what`: "there is no tool" or what else is said of such a word.
Error no_such_tool(std::string_view word, std::string_view what = "there is no tool",
                   std::vector<std::string_view> known = {});
/// "fsdist --type=ext4"; of a tool's own name its summary.
std::string meaning_of(const Called& called);
/// "ext4dist (--type=ext4), xfsdist (--type=xfs)"; empty where there is no other name.
std::string other_names_of(const Tool& tool);

}  // namespace coretap
