#include "docs/documents.hpp"

#include <fmt/format.h>

#include "coretap/tool.hpp"
#include "metrics/printed.hpp"

namespace coretap {

std::map<std::string, std::string> golden_documents() {
  return {{"keys.txt", keys_of_all()}, {"metrics.txt", metrics::series_of_all()}};
}

std::string tool_table() {
  std::string text = "| Tool | Subsystem | What it shows |\n| --- | --- | --- |\n";
  for (auto& entry : registry()) {
    auto tool = build(entry);
    std::string summary(tool.summary);
    for (std::size_t at = 0; (at = summary.find('|', at)) != std::string::npos; at += 2)
      summary.insert(at, 1, '\\');
    text += fmt::format("| `{}` | {} | {} |\n", tool.name, tool.subsystem, summary);
  }
  return text;
}

}  // namespace coretap
