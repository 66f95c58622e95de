// What the user types to run a tool, for usage lines, examples and hints.
#pragma once
#include <string>
#include <string_view>

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

}  // namespace coretap
