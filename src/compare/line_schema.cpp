#include "compare/line_schema.hpp"

#include <algorithm>
#include <iterator>

#include "coretap/report_kind.hpp"
#include "coretap/tool.hpp"
#include "text/units.hpp"

namespace coretap::compare {

namespace {

/// Numbers that say what a row is about.
bool is_id(std::string_view name) {
  constexpr std::string_view kIds[] = {
      "cgroup_id", "cpu",   "gid", "id",   "inode", "ip",  "level",   "major", "minor", "netns",
      "node",      "order", "pid", "port", "ppid",  "ret", "threads", "tid",   "uid"};
  constexpr std::string_view kEnds[] = {"_pid", "_tid", "_id", "_port", "_cpu", "_uid"};
  return std::ranges::count(kIds, name) || name == "monotonic_ns" ||
         std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}
/// Not sums: they follow from others, or do not add up.
bool adds_up(std::string_view name) {
  constexpr std::string_view kBegins[] = {"average",  "mean", "min_", "max_", "longest", "largest",
                                          "shortest", "p5",   "p9",   "p1",   "percent"};
  constexpr std::string_view kEnds[] = {"_per_second", "_ratio", "_percent", "_hz", "ratio"};
  return std::ranges::none_of(kBegins, [&](auto begin) { return name.starts_with(begin); }) &&
         std::ranges::none_of(kEnds, [&](auto end) { return name.ends_with(end); });
}
/// Words of events that have few values.
bool is_label(std::string_view name) {
  constexpr std::string_view kLabels[] = {"action", "device",    "direction", "disk",     "error",
                                          "event",  "file_type", "function",  "kind",     "name",
                                          "object", "operation", "probe",     "protocol", "reason",
                                          "stage",  "state",     "syscall",   "target"};
  return std::ranges::count(kLabels, name);
}
bool is_duration(std::string_view name) {
  constexpr std::string_view kTimes[] = {"latency_ns", "delay_ns", "duration_ns", "lasted_ns",
                                         "time_ns",    "total_ns", "wait_ns"};
  return std::ranges::count(kTimes, name);
}

/// Of an amount: also of the key "bytes".
std::string unit_in(const std::string& name) {
  const auto* unit = unit_of_key("_" + name);
  return std::string(unit ? unit->words : "");
}

void add_kinds(std::map<std::string, LineKind, std::less<>>& to, const coretap::Report& report) {
  for (auto& kind : report->json()) {
    auto& line = to[kind.type];
    for (auto& k : kind.keys) {
      line.rows |= k.meaning == Meaning::sum;
      line.histogram |= k.name == "histogram";
      line.keys.emplace(k.name, k).first->second.unit = unit_in(k.name);
    }
  }
}

}  // namespace

const OutputKey* LineKind::declared(std::string_view name) const {
  auto found = keys.find(name);
  return found == keys.end() || found->second.meaning == Meaning::unknown ? nullptr
                                                                          : &found->second;
}

OutputKey LineKind::of(std::string_view name) const {
  if (auto* known = declared(name)) return *known;
  OutputKey guess{.name = std::string(name), .type = {}, .unit = {}, .doc = {}};
  guess.unit = unit_in(guess.name);
  guess.meaning = !rows && is_duration(name) ? Meaning::duration
                  : is_id(name)              ? Meaning::id
                  : adds_up(name)            ? Meaning::sum
                                             : Meaning::other;
  // Of a tool that says what adds up, only amounts.
  if (!keys.empty() && guess.unit.empty()) guess.meaning = Meaning::other;
  return guess;
}

bool LineKind::labels_rows(std::string_view name) const {
  auto* known = declared(name);
  return name != "container_id" && (!known || known->meaning == Meaning::label);
}

bool LineKind::labels_events(std::string_view name) const {
  if (name == "comm" || name == "container") return true;
  auto* known = declared(name);
  return known ? known->meaning == Meaning::label && known->few : is_label(name);
}

LineSchema::LineSchema(std::string_view tool) {
  const auto* registered = find_tool(tool);
  if (!registered) return;
  known_ = true;
  const auto declared = build(*registered);
  add_kinds(kinds_, declared.report);
  for (auto& other : declared.other_reports) add_kinds(kinds_, other.report);
}

const LineKind& LineSchema::of(std::string_view type) const {
  static const LineKind kNothing, kRows{.rows = true}, kHistogram{.histogram = true};
  if (auto kind = kinds_.find(type); kind != kinds_.end()) return kind->second;
  if (known_) return kNothing;
  if (type == "row" || type == "interval") return kRows;
  return type == "histogram" ? kHistogram : kNothing;
}

}  // namespace coretap::compare
