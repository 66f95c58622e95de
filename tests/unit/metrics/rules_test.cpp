// Alert rules: what packaging ships is what the command prints, and rules are about metrics that
// there are.
#include "metrics/rules.hpp"

#include "expect.hpp"

namespace coretap::metrics {
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

}  // namespace coretap::metrics
