// `coretap list`, `help TOOL`, `find WORD...`, `doctor`, `link`, `--version`.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// The exit status, if the first argument is one of these commands.
std::optional<int> run_command(const std::vector<std::string>& arguments);

/// The first argument is neither a command nor a tool.
Error no_such_tool(std::string_view name);

int usage_without_tool();

int doctor(const std::vector<std::string>& arguments);

}  // namespace coretap
