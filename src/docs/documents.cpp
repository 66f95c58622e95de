#include "docs/documents.hpp"

#include <fmt/format.h>

#include "cli/help.hpp"
#include "docs/completion.hpp"
#include "docs/keys.hpp"
#include "docs/man.hpp"
#include "docs/readme.hpp"

namespace coretap {

std::map<std::string, std::string> documents(const Naming& naming) {
  std::map<std::string, std::string> all;
  all["man/coretap.8"] = coretap_man_page(naming);
  all["completion/bash/coretap"] = bash_completion(naming);
  all["completion/zsh/_coretap"] = zsh_completion(naming);
  all["completion/fish/coretap.fish"] = fish_completion(naming);
  all["readme-table.md"] = readme_tool_table();
  for (auto& entry : registry()) {
    auto tool = build(entry);
    all[fmt::format("man/{}.8", naming.page(tool.name))] = man_page(tool, naming);
    all[fmt::format("keys/{}.txt", tool.name)] = keys(tool);
    all[fmt::format("help/{}.txt", tool.name)] = help_text(tool);
  }
  return all;
}

}  // namespace coretap
