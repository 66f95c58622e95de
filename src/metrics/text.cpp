#include "metrics/text.hpp"

#include <fmt/format.h>

#include "base/parse.hpp"
#include "metrics/names.hpp"

namespace coretap::metrics {

namespace {

std::string possible_labels(const Plan& plan) {
  std::string all;
  for (auto& f : plan.shape.fields) {
    if (!can_be_label(f) || f.table_only) continue;
    all += fmt::format(" {}{}", f.key, values_of(f) == Values::capped ? "*" : "");
  }
  if (plan.shape.elements.read) all += fmt::format(" {}", plan.shape.elements.label);
  return all.empty() ? " none" : all;
}

std::string text_of(Tool tool, const Report& report, std::string_view when) {
  tool.report = report;
  Config config;
  for (auto rest = when; !rest.empty();) config.give(take_until(rest, '|'), "");
  auto name = when.empty() ? std::string(tool.name) : fmt::format("{} --{}", tool.name, when);
  auto plan = make_plan(tool, config, {});
  if (!plan) return fmt::format("{}: none\n", name);
  if ((*plan)->shape.kind == MetricShape::stacks)
    return fmt::format("{}: how many events there were\n", name);
  auto text = fmt::format("{}: labels{}\n", name, possible_labels(**plan));
  for (auto* families : {&(*plan)->families, &(*plan)->totals})
    for (auto& f : *families) text += fmt::format("  {} {}: {}\n", f.name, name_of(f.type), f.help);
  return text;
}

}  // namespace

std::string metrics_text(const Tool& tool) {
  auto text = text_of(tool, tool.report, {});
  for (auto& other : tool.other_reports) text += text_of(tool, other.report, other.when);
  return text;
}

}  // namespace coretap::metrics
