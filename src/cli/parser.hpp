// Converts command line arguments to a configuration.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/reports.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// The parsed command line.
struct Invocation {
  Config config;
  enum { run, help, usage, version } what = run;
  std::set<std::string> typed;  ///< names of options, with their dashes
  OtherName called = {};        ///< the tool's
};

/// All options of a tool: its own and the common ones.
std::vector<Option> all_options(const Tool& tool);

/// Equivalents of options of bcc and libbpf-tools, for all tools.
const std::vector<Elsewhere>& refused_by_all();

/// The report that these options select.
const Report& chosen_report(const Tool& tool, const Config& config);

/// Parses options, and a command after --, into the invocation; -> the remaining words. `command`:
/// as the user types it, for hints.
Result<std::vector<std::string>> take_options(Invocation& invocation, std::string_view command,
                                              const std::vector<Option>& options,
                                              const std::vector<std::string>& arguments,
                                              const std::vector<Elsewhere>& elsewhere = {});

Result<Invocation> parse_command_line(const Tool& tool, const std::vector<std::string>& arguments);

}  // namespace coretap
