#include <algorithm>
#include <string_view>

#include "compare/compare_text.hpp"
#include "compare/stack_picture.hpp"
#include "fuzz.hpp"

using namespace coretap;

/// Lines of a tool, compared with themselves: a file of any user.
FUZZ(compare_lines, bytes) {
  auto series = compare::series_of_lines(bytes, "a file");
  if (!series) {
    MUST(fuzz::is_plain(series.error().what));
    return;
  }
  MUST(!series->intervals.empty() && series->events.size() <= series->names.size());
  for (auto& interval : series->intervals) {
    for (auto& [name, n] : interval.counts) MUST(name < series->names.size());
    for (auto& [name, h] : interval.histograms) MUST(name < series->names.size());
  }
  const std::vector<compare::Series> one{*series};
  auto same = compare::compare(one, one, {.at_least = 0});
  if (!same) return;
  for (auto& line : same->lines)
    MUST(line.verdict != compare::Line::Verdict::more &&
         line.verdict != compare::Line::Verdict::less);
  for (auto text : {compare::in_text(*same), compare::in_json(*same), compare::in_csv(*same)})
    for (std::string_view rest = text; !rest.empty();) {
      auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      MUST(fuzz::is_plain(line));
    }
  if (!same->whole.empty()) MUST(compare::differential_svg(*same, one, one).ends_with("</svg>\n"));
}
