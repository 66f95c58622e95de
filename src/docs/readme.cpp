#include "docs/readme.hpp"

#include <fmt/format.h>

#include "coretap/tool.hpp"

namespace coretap {

namespace {

std::string cell(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '|') safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace

std::string readme_tool_table() {
  std::string text = "| Tool | Subsystem | What it shows |\n| --- | --- | --- |\n";
  for (auto& entry : registry()) {
    auto tool = build(entry);
    text += fmt::format("| `{}` | {} | {} |\n", tool.name, tool.subsystem, cell(tool.summary));
  }
  return text;
}

}  // namespace coretap
