#include "tools/cpu/walltime/latency.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/histogram.hpp"
#include "tools/cpu/walltime/states.hpp"
#include "walltime.skel.h"

namespace coretap {

namespace {

constexpr std::uint32_t kMostKinds = 8192;  // of waits, by call, flags and kernel stack
constexpr HistogramScale kScale;            // microseconds, powers of two

/// The values since `then`.
hist difference(hist now, const hist& then) {
  for (int i = 0; i < HIST_SLOTS; i++) now.slots[i] -= then.slots[i];
  now.total -= then.total;
  return now;
}

}  // namespace

void WallLatency::configure(Session& s) {
  wanted_ = s.config.given("latency");
  before_.clear();
  set_variable(s, "latency", wanted_);
}

void WallLatency::size_maps(Session& s) const {
  if (auto* map = s.map(maps::wait_hists); map && wanted_)
    bpf_map__set_max_entries(map, kMostKinds);
}

void WallLatency::show(Session& s, std::string_view time, const StateOf& state_of) {
  std::map<std::size_t, hist> states;
  s.source->each_typed_entry<walltime_kind, hist>(maps::wait_hists, [&](auto& kind, auto& now) {
    const WallCell cell{kind.witness, kind.stack};
    auto& before = before_[cell];
    auto more = difference(now, before);
    before = now;
    auto& sum = states[state_of(cell)];
    for (int i = 0; i < HIST_SLOTS; i++) sum.slots[i] += more.slots[i];
    sum.total += more.total;
  });
  std::vector<std::pair<std::size_t, hist>> all(states.begin(), states.end());
  std::erase_if(all, [](auto& entry) { return !histogram_count(entry.second); });
  std::ranges::stable_sort(
      all, [](auto& a, auto& b) { return histogram_count(a.second) < histogram_count(b.second); });
  for (auto& [state, sum] : all) {
    auto& name = wall::states()[state].name;
    if (s.config.format == OutputFormat::json) {
      JsonLine line("latency", s.tool.name);
      line.text("time", time).text("state", name);
      json_histogram(line, sum, kScale);
      s.out.line(line.finish());
    } else {
      s.out.line(fmt::format("{}\n{}{}\n", name, draw_histogram(sum, kScale),
                             histogram_summary(sum, kScale)));
    }
  }
}

JsonKind WallLatency::json() {
  JsonKind kind{"latency",
                "with --latency, one for each state off the CPU, of stays that have ended",
                {type_key("latency"), time_key(), key("state", "string", "name of the state")}};
  for (auto& k : histogram_keys(kScale)) kind.keys.push_back(k);
  return kind;
}

}  // namespace coretap
