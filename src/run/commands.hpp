// `coretap list`, `help TOOL`, `find WORD...`, `doctor`, `link`, `--version`.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace coretap {

/// The exit status, if the first argument is one of these commands.
std::optional<int> run_command(const std::vector<std::string>& arguments);

int usage_without_tool();

int doctor(const std::vector<std::string>& arguments);

}  // namespace coretap
