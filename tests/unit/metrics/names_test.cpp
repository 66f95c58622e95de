// Names and labels generated from the field tables, for every tool.
#include "metrics/names.hpp"

#include "all_tools.hpp"
#include "cli/parser.hpp"
#include "metrics/printed.hpp"

namespace coretap::metrics {
namespace {

std::shared_ptr<const Plan> plan_of(std::string_view name, const Words& arguments = {},
                                    const Words& labels = {}) {
  auto tool = build(*find_tool(name));
  auto parsed = parse_command_line(tool, arguments);
  EXPECT_TRUE(parsed) << name;
  if (!parsed) return nullptr;
  tool.report = chosen_report(tool, parsed->config);
  auto plan = make_plan(tool, parsed->config, labels);
  EXPECT_TRUE(plan) << name << ": " << (plan ? "" : plan.error().what);
  return plan ? *plan : nullptr;
}

Words labels_of(const Plan& plan) {
  Words names;
  for (auto& l : plan.labels) names.push_back(l.name);
  return names;
}

TEST(MetricNames, HistogramsOfTimes) {
  auto plan = plan_of("biolatency", {"-D"});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->families.size(), 1u);
  auto& f = plan->families[0];
  EXPECT_EQ(f.name, "coretap_biolatency_seconds");
  EXPECT_EQ(labels_of(*plan), Words{"disk"});
  // 2 us to 67 s, in powers of two.
  ASSERT_EQ(f.buckets.bounds.size(), 26u);
  EXPECT_EQ(f.buckets.bounds.front(), 2'000u);
  EXPECT_EQ(f.buckets.bounds.back(), (1ULL << 26) * 1'000);
  EXPECT_EQ(f.lines(), 29u);
  EXPECT_TRUE(labels_of(*plan_of("biolatency")).empty());
}

// A value of exactly 4096 bytes is in the bucket up to 8191, not in the one up to 4095.
TEST(MetricNames, BoundsOfWholeNumbersAreInclusive) {
  auto plan = plan_of("bitesize");
  ASSERT_TRUE(plan);
  for (auto bound : plan->families[0].buckets.bounds)
    EXPECT_EQ(bound & (bound + 1), 0u) << bound;  // 2^n - 1
}

TEST(MetricNames, CountersInBaseUnits) {
  WordSet names;
  auto syscount = plan_of("syscount", {"-L"});
  for (auto& f : syscount->families) names.insert(f.name);
  EXPECT_EQ(names, (WordSet{"coretap_syscount_total", "coretap_syscount_seconds_total",
                            "coretap_syscount_errors_total"}));
  EXPECT_EQ(labels_of(*plan_of("syscount")), (Words{"syscall", "abi"}));
}

TEST(MetricNames, CappedLabelsOnlyWhereTheyAreAskedFor) {
  EXPECT_EQ(labels_of(*plan_of("execsnoop")), Words{"error"});
  EXPECT_EQ(labels_of(*plan_of("execsnoop", {}, {"comm"})), (Words{"comm", "error"}));
  EXPECT_EQ(labels_of(*plan_of("runqlat", {"--by", "comm"}, {"comm"})), Words{"comm"});
  for (auto& [tool, by, labels] :
       {std::tuple{"syscount", "syscall,cgroup", Words{"syscall", "cgroup"}},
        {"biolatency", "container,uid", {"uid", "container"}}})
    EXPECT_EQ(labels_of(*plan_of(tool, {"--by", by})), labels);
  // A sum has the disk of one of its rows.
  EXPECT_EQ(labels_of(*plan_of("biotop", {"--by", "comm"})), Words{"comm"});
  auto tool = build(*find_tool("execsnoop"));
  for (auto* name : {"pid", "args", "nothing"}) {
    auto refused = make_plan(tool, Config(), {name});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().status, kUsage);
    EXPECT_TRUE(says(refused.error().what, name));
  }
}

// --by accepts keys: they do not depend on the counts.
TEST(MetricNames, KeysAreNoCounts) {
  for (auto& [tool, when] : all_reports()) {
    auto& report = tool.report;
    if (!report->adds_up()) continue;
    auto shape = report->metrics(Config());
    std::string none(report->record_size(), '\0'), counted = none;
    std::fill(counted.begin() + static_cast<std::ptrdiff_t>(shape.value_at), counted.end(), '\1');
    Config config;
    FieldContext context{.config = &config, .seconds = 1};
    for (auto& f : report->fields()) {
      if (!is_key(f) || f.format.kind == Format::stack || f.only_with == kNamedByOnly) continue;
      EXPECT_EQ(f.read(none.data(), context), f.read(counted.data(), context))
          << tool.name << ": " << f.key;
    }
  }
}

// The golden file lists them.
TEST(MetricNames, ReadingsHaveDecimals) {
  auto loads = plan_of("loads", {"--summary"});
  for (auto& f : loads->totals)
    EXPECT_EQ(f.unit.thousandths, f.name.find("_load_") != f.name.npos) << f.name;
  EXPECT_TRUE(plan_of("extfrag", {"--unusable"})->families.at(0).unit.thousandths);
}

/// Rules of Prometheus, for every tool and report.
TEST(MetricNames, EveryTool) {
  const std::regex metric("coretap_[a-z0-9_]+"), label("[a-z][a-z0-9_]*");
  for (auto& [tool, when] : all_reports()) {
    auto plan = make_plan(tool, Config(), {});
    if (!plan) continue;
    auto text = metrics_text(tool);
    WordSet names;
    for (auto* families : {&(*plan)->families, &(*plan)->totals})
      for (auto& f : *families) {
        EXPECT_TRUE(std::regex_match(f.name, metric)) << f.name;
        EXPECT_TRUE(names.insert(f.name).second) << f.name << " twice";
        EXPECT_FALSE(f.help.empty()) << f.name;
        // Profiles have no series in that format.
        if ((*plan)->shape.kind != MetricShape::stacks) {
          EXPECT_TRUE(says(text, fmt::format("\n  {} {}: {}\n", f.name, name_of(f.type), f.help)));
        }
        EXPECT_EQ(f.name.ends_with("_total"), f.type == Type::counter) << f.name;
      }
    for (auto& f : tool.report->fields()) {
      if (values_of(f) == Values::unbounded) continue;
      EXPECT_TRUE(std::regex_match(std::string(f.key), label)) << f.key;
      // Reserved names; as labels those after "pid" may have any number of values.
      for (auto* kept : {"le", "quantile", "tool", "entry", "job", "instance", "pid", "tid", "ppid",
                         "port", "address", "path", "file", "args", "cpu"})
        EXPECT_NE(f.key, kept) << tool.name;
    }
  }
}

}  // namespace
}  // namespace coretap::metrics
