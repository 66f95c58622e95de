// What an installation calls the tools: their pages, and how they are called.
#pragma once
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace coretap {

struct Naming {
  std::string prefix = {};  ///< before their own names
  bool own_names = true;    ///< these can be called; else only `coretap NAME`

  std::string page(std::string_view tool) const {
    return fmt::format("{}{}", own_names ? prefix : "coretap-", tool);
  }
  std::string command(std::string_view tool) const {
    return fmt::format("{}{}", own_names ? prefix : "coretap ", tool);
  }
  /// A command line that begins with the tool's own name.
  std::string line(std::string_view tool, std::string_view words) const {
    if (!words.starts_with(tool)) return std::string(words);
    return command(tool).append(words.substr(tool.size()));
  }
};

}  // namespace coretap
