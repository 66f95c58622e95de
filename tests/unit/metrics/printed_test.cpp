// Output of `coretap serve --print`: Grafana dashboards, alert rules, ClickHouse tables.
#include "metrics/printed.hpp"
#include "all_tools.hpp"
#include "cli/naming.hpp"
#include "expect.hpp"
#include "text/json_kinds.hpp"

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

// Every metric is shown, and no unknown one.
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
    EXPECT_TRUE(
        says(text, fmt::format("coretap_runqlat_seconds_bucket{{instance=~\\\"$instance\\\","
                               "entry=\\\"{}\\\"}}",
                               entry)));
}

TEST(Rules, ThePackagesFileIsTheirOutput) {
  auto file = places::source_dir() + "/packaging/exporter/rules.yml";
  EXPECT_EQ(places::file_text(file), rules()) << "run scripts/golden";
}

TEST(Rules, EachTellsWhatToDo) {
  auto text = rules();
  EXPECT_GT(count_of(text, "- alert: Coretap"), 0u);
  for (auto* part : {"expr: ", "severity: ", "summary: ", "description: "})
    EXPECT_EQ(count_of(text, part), count_of(text, "- alert: Coretap")) << part;
}

TEST(Rules, AreAboutMetricsOfAllTools) {
  auto text = rules();
  WordSet named;
  const std::regex name("coretap_[a-z_]+");
  for (std::sregex_iterator m(text.begin(), text.end(), name), end; m != end; ++m)
    named.insert(m->str());
  EXPECT_EQ(named,
            (WordSet{"coretap_config_last_reload_successful", "coretap_events_total",
                     "coretap_otlp_dropped_total", "coretap_series_folded_total",
                     "coretap_tool_down", "coretap_tool_restarts_total", "coretap_tool_up"}));
}

/// Types by column, from the statement for a tool.
std::map<std::string, std::string> columns_of(const Tool& tool) {
  auto text = table(tool);
  std::map<std::string, std::string> all;
  const std::regex column("\n  `([a-z0-9_]+)` (.*?) COMMENT '.+'");
  for (std::sregex_iterator m(text.begin(), text.end(), column), end; m != end; ++m)
    EXPECT_TRUE(all.emplace((*m)[1], (*m)[2]).second) << (*m)[1] << " twice";
  return all;
}
std::map<std::string, std::string> columns_of(std::string_view name) {
  return columns_of(build(*find_tool(name)));
}

TEST(Tables, HaveAColumnForEachKey) {
  for (auto& tool : all_tools()) {
    SCOPED_TRACE(tool.name);
    std::map<std::string, bool> keys;  // and whether it may be null
    for (auto& kind : json_kinds(tool))
      for (auto& k : kind.keys) keys[k.name] |= k.type.ends_with(" or null");
    auto columns = columns_of(tool);
    EXPECT_EQ(columns.size(), keys.size());
    for (auto& [name, null] : keys) {
      ASSERT_TRUE(columns.contains(name)) << name;
      EXPECT_EQ(columns[name].starts_with("Nullable("), null) << name;
    }
  }
}

TEST(Tables, TypesHoldTheValues) {
  auto type = [](const std::string& column) {
    auto dot = column.find('.');
    return columns_of(column.substr(0, dot))[column.substr(dot + 1)];
  };
  expect_each(type, {"execsnoop.type => LowCardinality(String)",
                     "execsnoop.time => DateTime64(9) DEFAULT now64(9)", "execsnoop.ret => Int64",
                     "execsnoop.pid => UInt64", "execsnoop.error => Nullable(String)",
                     "execsnoop.incomplete => Bool", "execsnoop.args => Array(String)",
                     "execsnoop.options => Map(String, String)",
                     "opensnoop.dirfd => Nullable(Int64)", "traceloop.result => Nullable(Int64)",
                     "biolatency.histogram => Array(Tuple(`from_ns` UInt64, `below_ns` UInt64, "
                     "`count` UInt64))",
                     "cachestat.hit_ratio => Nullable(Float64)",
                     "offcputime.kernel_stack => Array(String)"});
}

// A quote would end the comment.
TEST(Tables, CommentsAreQuoted) {
  auto text = table(build(*find_tool("opensnoop")));
  EXPECT_TRUE(says(text, "the kernel\\'s monotonic clock"));
  for (std::size_t at = text.find("COMMENT '"); at != text.npos; at = text.find("COMMENT '", at)) {
    at += std::string_view("COMMENT '").size();
    while (text[at] != '\'') at += text[at] == '\\' ? 2 : 1;
    EXPECT_TRUE(text[at + 1] == ',' || text[at + 1] == '\n' || text[at + 1] == ';')
        << text.substr(at, 60);
  }
}

}  // namespace
}  // namespace coretap::metrics
