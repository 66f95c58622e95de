#include "run/commands.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "coretap/json.hpp"
#include "coretap/tool.hpp"
#include "lists/lists.hpp"
#include "text/errors.hpp"

namespace coretap {

void note_tools_in_build(std::string_view command) {
  if (auto few = tools_in_build(); !few.empty())
    fmt::print(stderr, "coretap {}: {}\n", command, few);
}

int run_list(const Config& config, const std::vector<std::string>&) {
  note_tools_in_build("list");
  bool json = config.given("json");
  Sink out;
  std::string_view subsystem;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    if (json) {
      JsonLine line;
      line.text("tool", tool.name).text("subsystem", tool.subsystem).text("summary", tool.summary);
      std::vector<std::string_view> others;
      for (auto& other : tool.other_names) others.push_back(other.name);
      out.line(line.texts("other_names", others).finish());
      continue;
    }
    if (tool.subsystem != subsystem) {
      out.line(fmt::format("{}{}:", subsystem.empty() ? "" : "\n", tool.subsystem));
      subsystem = tool.subsystem;
    }
    out.line(fmt::format("  {:<16} {}", tool.name, tool.summary));
    for (auto& other : tool.other_names)
      out.line(fmt::format("  {:<16} {} {}", other.name, tool.name, other.option));
  }
  if (json) return end_of(out);
  out.line("\ncommands that list:");
  for (auto* command : kListCommands)
    out.line(fmt::format("  {:<16} {}", command->name, command->summary));
  return end_of(out);
}

}  // namespace coretap
