#include "cli/naming.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/nearest.hpp"
#include "coretap/parse.hpp"

namespace coretap {

namespace {

// Text before a tool's name; the process's name does not change while it runs.
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

Called called(std::string_view name) {
  if (auto* entry = find_tool(name)) return {entry, entry->name, {}};
  // Tools are built only if no tool has this name.
  for (auto& call : all_names())
    if (call.name == name) return call;
  return {};
}

Tool build(const Called& call) {
  auto tool = build(*call.tool);
  if (!call.option.empty()) tool.called = {call.name, call.option};
  return tool;
}

std::vector<Called> all_names() {
  std::vector<Called> all;
  for (auto& entry : registry()) {
    all.push_back({&entry, entry.name, {}});
    for (auto& other : build(entry).other_names) all.push_back({&entry, other.name, other.option});
  }
  return all;
}

bool is_left_out(std::string_view tool) {
  auto& others = tools_left_out();
  return std::find(others.begin(), others.end(), tool) != others.end();
}

std::string tools_in_build() {
  auto& others = tools_left_out();
  if (others.empty()) return {};
  return fmt::format("{} of {} tools are in this build (scripts/run --all builds all)",
                     registry().size(), registry().size() + others.size());
}

Error no_such_tool(std::string_view word, std::string_view what,
                   std::vector<std::string_view> known) {
  if (is_left_out(word))
    return {fmt::format("the tool '{}' is not in this build", word),
            {},
            fmt::format("scripts/run {} adds it, scripts/run --all builds all tools", word),
            kUsage};
  for (auto& call : all_names()) known.push_back(call.name);
  auto& others = tools_left_out();
  known.insert(known.end(), others.begin(), others.end());
  auto hint = did_you_mean(word, known);
  if (!hint.empty()) hint += ' ';
  hint += "coretap list shows all tools, coretap --help all commands";
  if (auto few = tools_in_build(); !few.empty()) hint += "; " + few;
  return {fmt::format("{} '{}'", what, word), {}, hint, kUsage};
}

std::string condition_options(std::string_view when) {
  std::string text;
  if (when.starts_with('!')) when.remove_prefix(1);
  while (!when.empty()) {
    auto word = take_until(when, '|');
    if (!text.empty()) text += " or ";
    text += word == "task-filter"   ? "a filter by task"
            : word.starts_with('!') ? fmt::format("without --{}", word.substr(1))
                                    : fmt::format("--{}", word);
  }
  return text;
}

std::string meaning_of(const Called& called) {
  if (called.option.empty()) return std::string(build(*called.tool).summary);
  return fmt::format("{} {}", called.tool->name, called.option);
}

std::string other_names_of(const Tool& tool) {
  std::string words;
  for (auto& other : tool.other_names)
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", other.name, other.option);
  return words;
}

void started_by_link(std::string_view link, std::string_view tool) {
  if (link.ends_with(tool)) before() = link.substr(0, link.size() - tool.size());
}

}  // namespace coretap
