#include "cli/naming.hpp"

namespace coretap {

namespace {

// Before a tool's name; what a process is called does not change while it runs.
std::string& before() {
  static std::string words = "coretap ";
  return words;
}

}  // namespace

std::string command_of(std::string_view tool) { return before() + std::string(tool); }

std::string as_typed(std::string_view tool, std::string_view line) {
  if (!line.starts_with(tool)) return std::string(line);
  return command_of(tool).append(line.substr(tool.size()));
}

std::string page_of(std::string_view tool) { return "coretap-" + std::string(tool); }

void started_by_link(std::string_view link, std::string_view tool) {
  if (link.ends_with(tool)) before() = link.substr(0, link.size() - tool.size());
}

}  // namespace coretap
