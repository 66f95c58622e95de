// Dashboards of Grafana: panels of the metrics that there are, each in a place of its own.
#include "metrics/dashboard.hpp"

#include "all_tools.hpp"
#include "cli/naming.hpp"

namespace coretap::metrics {
namespace {

std::vector<Shown> shown_tools() {
  std::vector<Shown> all;
  for (auto& tool : all_tools()) {
    if (auto plan = make_plan(tool, Config(), {}))
      all.push_back({std::string(tool.name), "", *plan});
  }
  return all;
}

TEST(Dashboard, PanelsAreSideBySide) {
  auto json = parsed_json(dashboard(shown_tools()));
  std::set<std::pair<int, int>> taken;
  std::set<unsigned> ids;
  for (auto& panel : json["panels"].GetArray()) {
    EXPECT_TRUE(ids.insert(panel["id"].GetUint()).second);
    auto& grid = panel["gridPos"];
    for (int x = grid["x"].GetInt(); x < grid["x"].GetInt() + grid["w"].GetInt(); x++)
      for (int y = grid["y"].GetInt(); y < grid["y"].GetInt() + grid["h"].GetInt(); y++) {
        EXPECT_LT(x, 24);
        EXPECT_TRUE(taken.emplace(x, y).second) << panel["title"].GetString();
      }
  }
}

// Every metric is shown, and none that is not there.
TEST(Dashboard, ShowsTheMetricsThatThereAre) {
  auto tools = shown_tools();
  auto json = parsed_json(dashboard(tools));
  WordSet shown, there;
  const std::regex name("coretap_[a-z0-9_]+");
  for (auto& panel : json["panels"].GetArray()) {
    if (!panel.HasMember("targets")) continue;
    for (auto& target : panel["targets"].GetArray()) {
      std::string text = target["expr"].GetString();
      for (std::sregex_iterator m(text.begin(), text.end(), name), end; m != end; ++m)
        shown.insert(m->str());
    }
  }
  for (auto& tool : tools)
    for (auto* families : {&tool.plan->families, &tool.plan->totals})
      for (auto& f : *families) there.insert(f.name + (f.type == Type::histogram ? "_bucket" : ""));
  for (auto* own : {"coretap_tool_up", "coretap_events_total", "coretap_tool_cpu_seconds_total",
                    "coretap_tool_down"})
    there.insert(own), shown.insert(own);
  EXPECT_EQ(shown, there);
}

TEST(Dashboard, AToolThatRunsTwiceIsToldApart) {
  auto plan = *make_plan(build(*find_tool("runqlat")), Config(), {});
  auto text = dashboard({{"one", "a", plan}, {"two", "b", plan}});
  for (auto* entry : {"a", "b"})
    EXPECT_NE(text.find(fmt::format("coretap_runqlat_seconds_bucket{{instance=~\\\"$instance\\\","
                                    "entry=\\\"{}\\\"}}",
                                    entry)),
              text.npos)
        << entry;
}

}  // namespace
}  // namespace coretap::metrics
