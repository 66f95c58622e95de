// From the words of a command line to a configuration.
#pragma once
#include <string>
#include <vector>

#include "cli/config.hpp"
#include "coretap/reports.hpp"

namespace coretap {

struct Tool;

/// What a command line leads to, before anything is done.
struct Invocation {
  Config config;
  enum { run, help, version } what = run;
};

/// All options of a tool: its own and those that every tool has.
std::vector<Option> all_options(const Tool& tool);

/// The report that these options ask for.
const Report& chosen_report(const Tool& tool, const Config& config);

Result<Invocation> parse_command_line(const Tool& tool, const std::vector<std::string>& arguments);

}  // namespace coretap
