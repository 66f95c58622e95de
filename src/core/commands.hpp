// `coretap list`, `help TOOL`, `find WORD...`, `doctor`, `link`, `--version`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "output/sink.hpp"

namespace coretap {

/// The exit status, if the first argument is one of these commands.
std::optional<int> run_command(const std::vector<std::string>& arguments);

int usage_without_tool();

/// The exit status once all is written.
int end_of(Sink& out);

int doctor(const std::vector<std::string>& arguments);

}  // namespace coretap
