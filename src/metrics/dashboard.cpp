#include "metrics/printed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/sanitize.hpp"

namespace coretap::metrics {

namespace {

constexpr int kWidth = 12, kHeight = 8;  // of a panel, in Grafana's units; a row is 24 wide
constexpr std::string_view kInstance = "instance=~\"$instance\"";

struct Target {
  std::string expression, legend;
};

struct Panel {
  std::string title, help;
  std::string_view unit;  ///< Grafana's name of the unit
  std::vector<Target> targets;
  bool heatmap = false;
};

constexpr std::string_view kSource = R"("datasource":{"type":"prometheus","uid":"${datasource}"})";

class Writer {
 public:
  void row(std::string_view title) {
    if (x_) y_ += kHeight;
    x_ = 0;
    begin("row", title, 24, 1);
    panels_ += R"("collapsed":false,"panels":[]})";
    y_++;
  }

  void panel(const Panel& panel) {
    begin(panel.heatmap ? "heatmap" : "timeseries", panel.title, kWidth, kHeight);
    panels_ += fmt::format(R"("description":{},{},)", json_string(panel.help), kSource);
    panels_ +=
        panel.heatmap
            ? fmt::format(R"("options":{{"calculate":false,"yAxis":{{"unit":"{}"}}}})", panel.unit)
            : fmt::format(R"("fieldConfig":{{"defaults":{{"unit":"{}","min":0}},"overrides":[]}})",
                          panel.unit);
    std::vector<std::string> targets;
    for (auto& target : panel.targets)
      targets.push_back(fmt::format(
          R"({{"refId":"{}",{},"expr":{},"legendFormat":{},"format":"{}"}})",
          static_cast<char>('A' + targets.size()), kSource, json_string(target.expression),
          json_string(target.legend), panel.heatmap ? "heatmap" : "time_series"));
    panels_ += fmt::format(R"(,"targets":[{}]}})", fmt::join(targets, ","));
    x_ = x_ ? 0 : kWidth;
    if (!x_) y_ += kHeight;
  }

  std::string finish() const {
    return fmt::format(
        R"({{"title":"coretap","uid":"coretap","tags":["coretap"],"schemaVersion":37,)"
        R"("refresh":"30s","time":{{"from":"now-1h","to":"now"}},"templating":{{"list":[)"
        R"({{"name":"datasource","type":"datasource","query":"prometheus"}},)"
        R"({{"name":"instance","type":"query",{},)"
        R"-("query":"label_values(coretap_tool_up, instance)","refresh":2,"includeAll":true,)-"
        R"("multi":true,"current":{{"text":"All","value":"$__all"}}}}]}},"panels":[{}]}})",
        kSource, panels_);
  }

 private:
  /// Begins a panel or row at the next place.
  void begin(std::string_view type, std::string_view title, int width, int height) {
    if (id_) panels_ += ',';
    panels_ += fmt::format(
        R"({{"id":{},"type":"{}","title":{},"gridPos":{{"x":{},"y":{},"w":{},"h":{}}},)", ++id_,
        type, json_string(title), x_, y_, width, height);
  }

  std::string panels_;
  int id_ = 0, x_ = 0, y_ = 0;
};

std::string_view unit_of(const Family& family) {
  bool rate = family.type == Type::counter;
  if (family.unit.nanoseconds) return "s";  // for a counter: seconds per second
  if (family.unit.suffix == "bytes") return rate ? "Bps" : "bytes";
  return rate ? "cps" : "short";
}

/// Selects one tool's series, if the tool runs twice.
std::string selector(const Shown& tool) {
  return tool.entry.empty() ? fmt::format("{{{}}}", kInstance)
                            : fmt::format("{{{},entry=\"{}\"}}", kInstance, tool.entry);
}

std::vector<Panel> panels_of(const Shown& tool, const Family& family,
                             const std::vector<std::string>& labels) {
  auto rate = [&](std::string_view suffix) {
    return fmt::format("rate({}{}{}[$__rate_interval])", family.name, suffix, selector(tool));
  };
  auto by = labels;
  by.insert(by.begin(), "instance");
  std::string legend;
  for (auto& label : by) legend += fmt::format("{}{{{{{}}}}}", legend.empty() ? "" : " ", label);
  auto unit = unit_of(family);
  if (family.type != Type::histogram) {
    auto value = family.type == Type::counter ? rate("") : family.name + selector(tool);
    auto sum = fmt::format("sum by ({}) ({})", fmt::join(by, ", "), value);
    return {{family.name, family.help, unit, {{sum, legend}}}};
  }
  Panel heat{family.name,
             family.help,
             unit,
             {{fmt::format("sum by (le) ({})", rate("_bucket")), "{{le}}"}},
             true};
  Panel quantiles{fmt::format("{}: quantiles", family.name), family.help, unit, {}};
  by.emplace_back("le");
  for (auto* q : {"0.5", "0.99"})
    quantiles.targets.push_back({fmt::format("histogram_quantile({}, sum by ({}) ({}))", q,
                                             fmt::join(by, ", "), rate("_bucket")),
                                 fmt::format("{} {}", q, legend)});
  return {heat, quantiles};
}

void common(Writer& w) {
  auto of_tools = [](std::string_view name, std::string_view more = {}) {
    return fmt::format("{}{{{}{}}}", name, kInstance, more);
  };
  auto rate = [](const std::string& series) {
    return fmt::format("rate({}[$__rate_interval])", series);
  };
  constexpr std::string_view kTool = "{{instance}} {{tool}}";
  w.row("coretap");
  w.panel({"Tools that run and answer",
           "0: see coretap_tool_down for the reason",
           "short",
           {{of_tools("coretap_tool_up"), std::string(kTool)}}});
  w.panel({"Events",
           "by what became of them",
           "cps",
           {{fmt::format("sum by (instance, tool, outcome) ({})",
                         rate(of_tools("coretap_events_total"))),
             "{{instance}} {{tool}} {{outcome}}"}}});
  w.panel({"Events that are missing",
           "lost, or seen without their start or end",
           "cps",
           {{fmt::format("sum by (instance, tool) ({})",
                         rate(of_tools("coretap_events_total",
                                       ",outcome=~\"lost|untracked|unmatched|missed|unjudged\""))),
             std::string(kTool)}}});
  w.panel({"CPU time of the tools' processes",
           "",
           "percentunit",
           {{rate(of_tools("coretap_tool_cpu_seconds_total")), std::string(kTool)}}});
}

}  // namespace

std::string dashboard(const std::vector<Shown>& tools) {
  Writer w;
  common(w);
  for (auto& tool : tools) {
    if (tool.plan->families.empty() && tool.plan->totals.empty()) continue;
    w.row(tool.title);
    std::vector<std::string> labels;
    for (auto& label : tool.plan->labels) labels.push_back(label.name);
    for (auto& family : tool.plan->families)
      for (auto& panel : panels_of(tool, family, labels)) w.panel(panel);
    for (auto& family : tool.plan->totals)
      for (auto& panel : panels_of(tool, family, {})) w.panel(panel);
  }
  return w.finish();
}

}  // namespace coretap::metrics
