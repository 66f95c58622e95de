#include "docs/documents.hpp"

#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "coretap/identity.hpp"
#include "lib/core/shared.h"
#include "text/json_kinds.hpp"
#include "text/units.hpp"

namespace coretap {

namespace {

constexpr char kHead[] =
    "# TOOL [--OPTION] TYPE: the keys of a JSON line of this type, in their order.\n"
    "# TOOL [--OPTION] csv: the columns; after a type: they are its keys without @line.\n"
    "# string?: string or null. [string]: array. {...}: object. <with --x: ...>: only then.\n"
    "# @name: the keys of that line. Units follow from the ends of keys.\n";

std::string text_of(const std::vector<OutputKey>& keys);

/// "string or null" is "string?", "array of strings" is "[string]".
std::string type_of(const OutputKey& k) {
  std::string_view type = k.type;
  constexpr std::string_view kOrNull = " or null", kArray = "array of ";
  bool null = type.ends_with(kOrNull), array = type.starts_with(kArray);
  if (null) type.remove_suffix(kOrNull.size());
  if (array) type = type.substr(kArray.size(), type.size() - kArray.size() - 1);
  auto text =
      k.members.empty() ? std::string(type) : fmt::format("{{{}}}", text_of(k.members).substr(1));
  if (array) text = fmt::format("[{}]", text);
  if (null) text += '?';
  auto* unit = unit_of_key(k.name);
  if (k.unit != (unit ? unit->words : "")) text += fmt::format("({})", k.unit);
  return text;
}

/// Each key is preceded by a space.
std::string text_of(const std::vector<OutputKey>& keys) {
  std::string text;
  std::string_view when;
  for (auto& k : keys) {
    if (k.when != when && !when.empty()) text += '>';
    if (k.when != when && !k.when.empty()) text += fmt::format(" <{}:", condition_words(k.when));
    when = k.when;
    text += fmt::format(" {}:{}", k.name, type_of(k));
  }
  return when.empty() ? text : text + '>';
}

/// Groups of keys that are listed once: many tools have them, in this order.
const std::map<std::string, std::string>& common() {
  static const auto all = [] {
    std::vector<OutputKey> cgroup;
    for (auto& f : who<task_id>(id::cgroup)) cgroup.push_back(key(f, sizeof(task_id)));
    return std::map<std::string, std::string>{
        {"@line", text_of({type_key({}), key("tool", "string", {})})},
        {"@cgroup", text_of(cgroup)},
        {"@user_stack", text_of(user_stack_keys())},
    };
  }();
  return all;
}

std::string short_text_of(const std::vector<OutputKey>& keys) {
  auto text = text_of(keys);
  for (auto& [name, same] : common())
    for (auto at = text.find(same); at != text.npos; at = text.find(same, at))
      text.replace(at + 1, same.size() - 1, name);
  return text;
}

std::string units() {
  std::string text = "units:";
  for (auto& unit : key_units())
    text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", unit.suffix, unit.words);
  return text + '\n';
}

std::string line(std::string_view what, std::string_view keys) {
  return fmt::format("{}:{}\n", what, keys);
}

/// A line for each type, and one for CSV if its keys differ.
std::string lines_of(std::string_view name, std::span<const JsonKind> kinds,
                     const std::vector<OutputKey>& columns) {
  auto csv = short_text_of(columns);
  std::string text;
  bool same = false;
  for (auto& kind : kinds) {
    auto keys = short_text_of(kind.keys);
    bool has_csv = !same && keys == " @line" + csv;
    same |= has_csv;
    text += line(fmt::format("{} {}{}", name, kind.type, has_csv ? ", csv" : ""), keys);
  }
  return same ? text : text + line(fmt::format("{} csv", name), csv);
}

}  // namespace

std::string keys_of_all() {
  auto text = kHead + units();
  for (auto& [name, keys] : common()) text += line(name, keys);
  std::map<std::string_view, std::string> lines;
  std::set<std::string> ends;  // header and ledger, the same in all tools
  for (auto& entry : registry()) {
    auto tool = build(entry);
    auto kinds = json_kinds(tool);
    ends.insert(line("all header", short_text_of(kinds.front().keys)) +
                line("all ledger", short_text_of(kinds.back().keys)));
    std::span<const JsonKind> rest(kinds.begin() + 1, kinds.end() - 1);
    auto add = [&](std::string_view name, const Report& report) {
      auto count = report->json().size();
      lines[entry.name] += lines_of(name, rest.first(count), report->csv());
      rest = rest.subspan(count);
    };
    add(tool.name, tool.report);
    for (auto& other : tool.other_reports)
      add(fmt::format("{} --{}", tool.name, other.when), other.report);
  }
  for (auto& both : ends) text += both;
  for (auto& [name, own] : lines) text += own;
  return text;
}

}  // namespace coretap
