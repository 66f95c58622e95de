#include "docs/documents.hpp"

#include <fmt/format.h>

#include "docs/completion.hpp"
#include "docs/help.hpp"
#include "docs/keys.hpp"
#include "docs/man.hpp"
#include "docs/readme.hpp"

namespace coretap {

std::map<std::string, std::string> documents() {
  std::map<std::string, std::string> all;
  all["man/coretap.8"] = coretap_man_page();
  all["completion/bash/coretap"] = bash_completion();
  all["completion/zsh/_coretap"] = zsh_completion();
  all["completion/fish/coretap.fish"] = fish_completion();
  all["readme-table.md"] = readme_tool_table();
  for (auto& entry : registry()) {
    auto tool = build(entry);
    all[fmt::format("man/{}.8", tool.name)] = man_page(tool);
    all[fmt::format("keys/{}.txt", tool.name)] = keys(tool);
    all[fmt::format("help/{}.txt", tool.name)] = help_text(tool);
  }
  return all;
}

}  // namespace coretap
