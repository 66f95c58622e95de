// Every tool, and every report of every tool.
#pragma once
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "expect.hpp"

namespace coretap {

inline const std::vector<Tool>& all_tools() {
  static const std::vector<Tool> all = [] {
    std::vector<Tool> tools;
    for (auto& entry : registry()) tools.push_back(build(entry));
    return tools;
  }();
  return all;
}

/// For tests that run for each tool, each with the tool's name.
inline auto each_registered() {
  std::vector<const Registered*> all;
  for (auto& entry : registry()) all.push_back(&entry);
  return testing::ValuesIn(all);
}
/// The same for those with a kernel program.
inline auto each_with_program() {
  std::vector<const Registered*> all;
  for (auto& entry : registry())
    if (!build(entry).object.compressed.empty()) all.push_back(&entry);
  return testing::ValuesIn(all);
}
inline std::string name_of_registered(const testing::TestParamInfo<const Registered*>& info) {
  return std::string(info.param->name);
}

inline std::vector<Report> reports_of(const Tool& tool) {
  std::vector<Report> all{tool.report};
  for (auto& other : tool.other_reports) all.push_back(other.report);
  return all;
}
/// A tool with one of its reports, and the option that selects it.
struct OfTool {
  Tool tool;
  std::string_view when;
};
inline std::vector<OfTool> all_reports() {
  std::vector<OfTool> all;
  for (auto& tool : all_tools()) {
    all.push_back({tool, {}});
    for (auto& other : tool.other_reports) {
      all.push_back({tool, other.when});
      all.back().tool.report = other.report;
    }
  }
  return all;
}

/// Options that a condition names, as Config::holds reads it.
inline Words options_of(std::string_view condition) {
  Words all;
  std::istringstream in{std::string(condition)};
  for (std::string word; std::getline(in, word, '|');)
    all.push_back(word.substr(0, word.find('=')).substr(word.starts_with('!')));
  return all;
}

inline bool has_option(const Tool& tool, std::string_view name) {
  return std::ranges::count(all_options(tool), name, &Option::name) > 0;
}

}  // namespace coretap
