#include "metrics/dashboard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/json.hpp"

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

class Writer {
 public:
  Writer() {
    json_.text("title", "coretap").text("uid", "coretap").key("tags").begin_array();
    json_.text("coretap").end_array().number("schemaVersion", 37).text("refresh", "30s");
    json_.key("time").begin_object().text("from", "now-1h").text("to", "now").end_object();
    variables();
    json_.key("panels").begin_array();
  }

  void row(std::string_view title) {
    if (x_) y_ += kHeight;
    x_ = 0;
    begin("row", title, 24, 1);
    json_.boolean("collapsed", false).key("panels").begin_array().end_array().end_object();
    y_++;
  }

  void panel(const Panel& panel) {
    begin(panel.heatmap ? "heatmap" : "timeseries", panel.title, kWidth, kHeight);
    json_.text("description", panel.help);
    source();
    if (panel.heatmap)
      json_.key("options")
          .begin_object()
          .boolean("calculate", false)
          .key("yAxis")
          .begin_object()
          .text("unit", panel.unit)
          .end_object()
          .end_object();
    else
      json_.key("fieldConfig")
          .begin_object()
          .key("defaults")
          .begin_object()
          .text("unit", panel.unit)
          .number("min", 0)
          .end_object()
          .key("overrides")
          .begin_array()
          .end_array()
          .end_object();
    json_.key("targets").begin_array();
    for (std::size_t i = 0; i < panel.targets.size(); i++) {
      auto& target = panel.targets[i];
      json_.begin_object().text("refId", std::string(1, static_cast<char>('A' + i)));
      source();
      json_.text("expr", target.expression).text("legendFormat", target.legend);
      json_.text("format", panel.heatmap ? "heatmap" : "time_series").end_object();
    }
    json_.end_array().end_object();
    x_ = x_ ? 0 : kWidth;
    if (!x_) y_ += kHeight;
  }

  std::string finish() {
    json_.end_array();
    return std::string(json_.finish());
  }

 private:
  void begin(std::string_view type, std::string_view title, int width, int height) {
    auto n = [](int number) { return static_cast<std::uint64_t>(number); };
    json_.begin_object().number("id", ++id_).text("type", type).text("title", title);
    json_.key("gridPos").begin_object().number("x", n(x_)).number("y", n(y_));
    json_.number("w", n(width)).number("h", n(height)).end_object();
  }
  void source() {
    json_.key("datasource").begin_object().text("type", "prometheus");
    json_.text("uid", "${datasource}").end_object();
  }
  void variables() {
    json_.key("templating").begin_object().key("list").begin_array();
    json_.begin_object().text("name", "datasource").text("type", "datasource");
    json_.text("query", "prometheus").end_object();
    json_.begin_object().text("name", "instance").text("type", "query");
    source();
    json_.text("query", "label_values(coretap_tool_up, instance)").number("refresh", 2);
    json_.boolean("includeAll", true).boolean("multi", true);
    json_.key("current").begin_object().text("text", "All").text("value", "$__all").end_object();
    json_.end_object().end_array().end_object();
  }

  JsonLine json_;
  std::uint64_t id_ = 0;
  int x_ = 0, y_ = 0;
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
  auto which = selector(tool);
  auto by = labels;
  by.insert(by.begin(), "instance");
  std::string legend;
  for (auto& label : by) legend += fmt::format("{}{{{{{}}}}}", legend.empty() ? "" : " ", label);
  auto sums = fmt::format("sum by ({})", fmt::join(by, ", "));
  auto title = family.name;
  if (family.type != Type::histogram) {
    auto value = family.name + which;
    if (family.type == Type::counter) value = fmt::format("rate({}[$__rate_interval])", value);
    return {{title, family.help, unit_of(family), {{fmt::format("{} ({})", sums, value), legend}}}};
  }
  auto buckets = fmt::format("rate({}_bucket{}[$__rate_interval])", family.name, which);
  Panel heat{title,
             family.help,
             unit_of(family),
             {{fmt::format("sum by (le) ({})", buckets), "{{le}}"}},
             true};
  Panel quantiles{fmt::format("{}: quantiles", title), family.help, unit_of(family), {}};
  by.emplace_back("le");
  for (auto* q : {"0.5", "0.99"})
    quantiles.targets.push_back(
        {fmt::format("histogram_quantile({}, sum by ({}) ({}))", q, fmt::join(by, ", "), buckets),
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
