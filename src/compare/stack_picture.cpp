#include "compare/stack_picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "compare/compare_text.hpp"
#include "stacks/flamegraph.hpp"
#include "stacks/stack_comparison.hpp"

namespace coretap::compare {

namespace {

constexpr std::uint64_t kParts = 1000;  // of a unit, so that rates are whole numbers

struct Place {
  double before = 0, after = 0;              ///< per second, with the frames above
  double inner_before = 0, inner_after = 0;  ///< of the frames above alone
  const Line* line = nullptr;
  bool certain() const {
    return line && (line->verdict == Line::Verdict::more || line->verdict == Line::Verdict::less);
  }
};
/// By path. Those of callers come before those of the frames above them.
using Places = std::map<std::string, Place, std::less<>>;

void add(Places& to, const std::vector<Series>& all, double Place::*side) {
  double seconds = 0;
  for (auto& series : all) seconds += series.seconds();
  for (auto& series : all)
    for (auto& interval : series.intervals)
      for (auto& [number, n] : interval.counts)
        if (auto& name = series.names[number]; name.what == kStack)
          to[name.key.substr(kStackKey.size())].*side += static_cast<double>(n) / seconds;
}

std::string_view caller_of(std::string_view path) {
  const auto end = path.rfind(';');
  return end == path.npos ? std::string_view() : path.substr(0, end);
}

}  // namespace

std::string differential_svg(const Comparison& c, const std::vector<Series>& a,
                             const std::vector<Series>& b) {
  Places places;
  add(places, a, &Place::before);
  add(places, b, &Place::after);
  Place all;
  for (auto& [path, place] : places) {
    auto caller = places.find(caller_of(path));
    auto& below = caller == places.end() ? all : caller->second;
    below.inner_before += place.before;
    below.inner_after += place.after;
  }
  all.before = all.inner_before;
  all.after = all.inner_after;
  double largest = 0;
  for (auto& line : c.lines) {
    if (line.what == c.whole + "/s" && line.key.empty()) all.line = &line;
    if (!line.key.starts_with(kStackKey) || line.what != fmt::format("{}/s", kStack)) continue;
    auto found = places.find(std::string_view(line.key).substr(kStackKey.size()));
    if (found == places.end()) continue;
    auto& place = found->second;
    place.line = &line;
    if (place.certain()) largest = std::max(largest, std::abs(place.after - place.before));
  }

  const auto unit = c.whole.ends_with("_ns") ? unit::ns : unit::plain;
  auto per_second = [&](double v) { return amount(v, unit) + "/s"; };
  FlameGraph graph(kParts);
  std::map<std::string, std::uint32_t, std::less<>> drawn;
  std::vector<const Place*> shown{&all};
  for (auto& [path, place] : places) {
    const auto caller = drawn.find(caller_of(path));
    if (caller == drawn.end() && path.find(';') != path.npos) continue;
    const auto name = path.substr(path.rfind(';') + 1);
    const auto frame =
        graph.child(caller == drawn.end() ? 0 : caller->second, {StackWord::user, false, name});
    if (!frame) continue;
    drawn.emplace(path, frame);
    if (shown.size() <= frame) shown.resize(frame + 1);
    shown[frame] = &place;
    const auto own =
        place.after > 0 ? place.after - place.inner_after : place.before - place.inner_before;
    graph.add_to(frame, static_cast<std::uint64_t>(
                            std::llround(std::max(own, 0.0) * static_cast<double>(kParts))));
  }

  FlameGraph::Paint paint;
  paint.css = difference_css();
  paint.legend = {{"more2", "more"}, {"more6", ""},           {"less2", "less"},
                  {"less6", ""},     {"gone", "only before"}, {"same", "not certain"}};
  paint.look = [&](std::uint32_t frame) -> FlameGraph::Paint::Look {
    auto& place = *shown[frame];
    const auto change = place.after - place.before;
    auto words =
        fmt::format("before {}, after {}: {}{} ({:+.2f} % of all)", per_second(place.before),
                    per_second(place.after), change > 0 ? "+" : "", per_second(change),
                    100 * change / std::max({all.before, all.after, 1e-300}));
    if (place.line && place.line->low)
      words +=
          fmt::format("; 99 % sure: {:+.1f} to {:+.1f} %; seen from {:.1f} %",
                      100 * *place.line->low, 100 * *place.line->high, 100 * *place.line->smallest);
    else if (!place.certain())
      words += "; too small to compare";
    const bool gone = place.after <= 0 && place.before > 0;
    if (!place.certain() || largest <= 0) return {gone ? "gone" : "same", std::move(words)};
    return {difference_style(change / std::max(largest, std::abs(change)), gone), std::move(words)};
  };
  PictureTitle title{.title = fmt::format("{}: what changed", c.a.name),
                     .unit = fmt::format("{} per second",
                                         unit.suffix == unit::ns.suffix ? "nanoseconds" : c.whole)};
  title.notes = {
      fmt::format("before {:.0f} s: {}; after {:.0f} s: {}", c.seconds_a, per_second(all.before),
                  c.seconds_b, per_second(all.after)),
      "width: per second of the second recording; frames that only the first one has are as wide "
      "as in it, with a dashed edge",
      fmt::format("red: more, blue: less, the deeper the larger the change{}; grey: not certain",
                  largest > 0 ? fmt::format(" (up to {})", per_second(largest)) : "")};
  return graph.svg(title, paint);
}

}  // namespace coretap::compare
