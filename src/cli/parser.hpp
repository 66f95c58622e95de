// From the words of a command line to a configuration.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.hpp"
#include "coretap/reports.hpp"

namespace coretap {

struct Tool;

/// What a command line leads to, before anything is done.
struct Invocation {
  Config config;
  enum { run, help, usage, version } what = run;
};

/// All options of a tool: its own and those that every tool has.
std::vector<Option> all_options(const Tool& tool);

/// What bcc's or libbpf-tools' options are called here, in all tools.
const std::vector<Elsewhere>& refused_by_all();

/// The report that these options ask for.
const Report& chosen_report(const Tool& tool, const Config& config);

/// Takes options, and a command after --, into the invocation; the words that are left. `command`:
/// as the user types it, for hints.
Result<std::vector<std::string>> take_options(Invocation& invocation, std::string_view command,
                                              const std::vector<Option>& options,
                                              const std::vector<std::string>& arguments,
                                              const std::vector<Elsewhere>& elsewhere = {});

Result<Invocation> parse_command_line(const Tool& tool, const std::vector<std::string>& arguments);

}  // namespace coretap
