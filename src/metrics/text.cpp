#include "metrics/printed.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "coretap/identity.hpp"
#include "coretap/parse.hpp"
#include "lib/core/shared.h"
#include "metrics/names.hpp"

namespace coretap::metrics {

namespace {

std::string labels_of(const std::vector<Field>& fields) {
  std::string all;
  for (auto& f : fields) {
    if (!can_be_label(f) || f.table_only) continue;
    all += fmt::format(" {}{}", f.key, values_of(f) == Values::capped ? "*" : "");
  }
  return all;
}

std::string possible_labels(const Plan& plan) {
  auto all = labels_of(plan.shape.fields);
  if (plan.shape.elements.read) all += fmt::format(" {}", plan.shape.elements.label);
  return all.empty() ? " none" : all;
}

using WritePlan = std::string (*)(const std::string& name, const Plan& plan);

std::string text_of(Tool tool, const Report& report, std::string_view when, WritePlan write) {
  tool.report = report;
  Config config;
  for (auto rest = when; !rest.empty();) config.give(take_until(rest, '|'), "");
  auto name = when.empty() ? std::string(tool.name) : fmt::format("{} --{}", tool.name, when);
  auto plan = make_plan(tool, config, {});
  if (!plan) return fmt::format("{}: none\n", name);
  if ((*plan)->shape.kind == MetricShape::stacks)
    return fmt::format("{}: how many events there were\n", name);
  return write(name, **plan);
}

std::string text_of_all_reports(const Tool& tool, WritePlan write) {
  auto text = text_of(tool, tool.report, {}, write);
  for (auto& other : tool.other_reports) text += text_of(tool, other.report, other.when, write);
  return text;
}

std::string explained(const std::string& name, const Plan& plan) {
  auto text = fmt::format("{}: labels{}\n", name, possible_labels(plan));
  for (auto* families : {&plan.families, &plan.totals})
    for (auto& f : *families) text += fmt::format("  {} {}: {}\n", f.name, name_of(f.type), f.help);
  return text;
}

/// Labels that most tools have.
const std::string& cgroup_labels() {
  static const auto text = labels_of(who<task_id>(id::cgroup));
  return text;
}

std::string series(const std::string& name, const Plan& plan) {
  auto labels = possible_labels(plan);
  if (auto at = labels.find(cgroup_labels()); at != labels.npos)
    labels.replace(at, cgroup_labels().size(), " @cgroup");
  std::string text;
  std::string_view before;  // labels of the preceding series on the line
  auto add = [&](const Family& f, std::string_view its_labels) {
    text += its_labels == before
                ? ","
                : fmt::format("{}{}:{}:", text.empty() ? "" : "\n", name, its_labels);
    before = its_labels;
    text += fmt::format(" {} {}{}{}", f.name, name_of(f.type), f.unit.suffix.empty() ? "" : " ",
                        f.unit.suffix);
  };
  for (auto& f : plan.families) add(f, labels);
  for (auto& f : plan.totals) add(f, " none");
  return text.empty() ? text : text + '\n';
}

}  // namespace

std::string metrics_text(const Tool& tool) { return text_of_all_reports(tool, explained); }

std::string series_of_all() {
  std::map<std::string_view, std::string> lines;
  for (auto& entry : registry()) lines[entry.name] = text_of_all_reports(build(entry), series);
  auto text = fmt::format(
      "# TOOL [--OPTION]: possible labels: series type [unit], ... *: must be asked for.\n"
      "@cgroup:{}\n",
      cgroup_labels());
  for (auto& [name, own] : lines) text += own;
  return text;
}

}  // namespace coretap::metrics
