#include "docs/keys.hpp"

#include <fmt/format.h>

#include "cli/help.hpp"
#include "text/json_kinds.hpp"

namespace coretap {

namespace {

std::string list(const std::vector<OutputKey>& keys, int indent) {
  std::string text;
  for (auto& k : keys) {
    auto type = k.unit.empty() ? k.type : fmt::format("{}, {}", k.type, k.unit);
    text += fmt::format("{:{}}{:<{}} {:<24} {}", "", indent, k.name, 22 - indent, type, k.doc);
    if (!k.when.empty()) text += fmt::format(" ({})", condition_words(k.when));
    text += '\n' + list(k.members, indent + 2);
  }
  return text;
}

}  // namespace

std::string keys(const Tool& tool) {
  std::string text;
  for (auto& kind : json_kinds(tool))
    text += fmt::format("{} --json, type \"{}\", {}:\n{}\n", tool.name, kind.type, kind.written,
                        list(kind.keys, 2));
  text += fmt::format("{} --csv:\n{}", tool.name, list(tool.report->csv(), 2));
  for (auto& other : tool.other_reports)
    text +=
        fmt::format("\n{} --csv --{}:\n{}", tool.name, other.when, list(other.report->csv(), 2));
  return text;
}

}  // namespace coretap
