#include "docs/documents.hpp"

#include <string_view>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "docs/keys.hpp"
#include "docs/man.hpp"
#include "metrics/text.hpp"

namespace coretap {

std::map<std::string, std::string> golden_documents() {
  // A histogram, events, stacks, a table and a flight recorder.
  constexpr std::string_view kShown[] = {"biolatency", "offcputime", "opensnoop", "syscount",
                                         "traceloop"};
  std::map<std::string, std::string> all;
  for (auto name : kShown) {
    auto tool = build(*find_tool(name));
    all[fmt::format("man/{}.8", page_of(name))] = man_page(tool);
    all[fmt::format("help/{}.txt", name)] = help_text(tool);
  }
  for (auto& entry : registry()) {
    auto tool = build(entry);
    all[fmt::format("keys/{}.txt", entry.name)] = keys(tool);
    all[fmt::format("metrics/{}.txt", entry.name)] = metrics::metrics_text(tool);
  }
  return all;
}

}  // namespace coretap
