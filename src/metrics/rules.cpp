#include "metrics/printed.hpp"

#include <string_view>

#include <fmt/format.h>

#include "coretap/sanitize.hpp"

namespace coretap::metrics {

namespace {

struct Rule {
  std::string_view name, expression;
  std::string_view lasts;  ///< minimum duration; empty: none
  std::string_view severity;
  std::string_view summary, description;
};

constexpr Rule kRules[] = {
    {"CoretapDataLost",
     "sum by (instance, tool) "
     "(rate(coretap_events_total{outcome=~\"lost|untracked|unmatched|missed|unjudged\"}[10m]))\n"
     "> 0.001 * sum by (instance, tool) (rate(coretap_events_total[10m]))",
     "10m", "warning", "{{ $labels.tool }} on {{ $labels.instance }} does not see all events",
     "More than one event in 1,000 is not counted. The label outcome of coretap_events_total says "
     "why. lost: raise --ring-size of the entry, or give it filters. untracked: raise --max-keys."},
    {"CoretapToolDown", "coretap_tool_up == 0", "5m", "warning",
     "{{ $labels.tool }} on {{ $labels.instance }} does not run or does not answer",
     "The label reason of coretap_tool_down says why, and so does the service's log. "
     "`coretap serve --check FILE` says whether this kernel and these privileges can run the tool."},
    {"CoretapSeriesLimit", "rate(coretap_series_folded_total[15m]) > 0", "30m", "info",
     "{{ $labels.tool }} on {{ $labels.instance }} counts label sets as other: raise max_series",
     "The tool has more label sets than series. All events are counted, but some under the label "
     "value other. Raise max_series of the entry, or take labels away."},
    {"CoretapRestarts", "increase(coretap_tool_restarts_total[1h]) > 3", "", "warning",
     "{{ $labels.tool }} on {{ $labels.instance }} starts again and again",
     "The tool ended by itself more than three times in an hour. The service's log has what it "
     "said. Counters begin at 0 after each start."},
    {"CoretapPushDrops", "sum by (instance, kind) (increase(coretap_otlp_dropped_total[15m])) > 0",
     "", "warning",
     "{{ $labels.kind }} of {{ $labels.instance }} that were to be pushed are dropped",
     "The label reason of coretap_otlp_dropped_total says why. queue: the endpoint of [otlp] does "
     "not answer, or not fast enough. refused, malformed: the service's log has the endpoint's "
     "reason. What is scraped does not change."},
    {"CoretapReloadFailed", "coretap_config_last_reload_successful == 0", "5m", "warning",
     "the configuration on {{ $labels.instance }} was refused; the one before it is in use",
     "`coretap serve --check FILE` says what is wrong and where. Correct the file, and send SIGHUP "
     "to the service."},
};

/// A YAML block of folded lines.
std::string folded(std::string_view text) {
  std::string out = ">-\n          ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "          ";
  }
  return out;
}

}  // namespace

std::string rules() {
  std::string text =
      "# Alerts about coretap itself. Made by `coretap serve --print rules`.\n"
      "groups:\n"
      "  - name: coretap\n"
      "    rules:\n";
  for (auto& r : kRules) {
    text += fmt::format("      - alert: {}\n        expr: {}\n", r.name, folded(r.expression));
    if (!r.lasts.empty()) text += fmt::format("        for: {}\n", r.lasts);
    text += fmt::format(
        "        labels: {{severity: {}}}\n        annotations:\n          summary: {}\n"
        "          description: {}\n",
        r.severity, quoted(r.summary, '"'), quoted(r.description, '"'));
  }
  return text;
}

}  // namespace coretap::metrics
