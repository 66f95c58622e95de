#include "compare/series.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace coretap::compare {

namespace {

constexpr unsigned kValueBits = 10;

}  // namespace

Buckets Buckets::fine_of(const HistogramScale& scale) {
  return {.kind = fine, .scale = scale, .grain = scale.step % 8 ? scale.step : scale.step / 8};
}

Buckets Buckets::of_values(Unit unit) {
  return {.kind = fine, .scale = {.unit = unit, .step = 1}, .bits = kValueBits};
}

double Buckets::from(std::uint32_t bucket) const {
  if (kind == slots) return static_cast<double>(scale.from(static_cast<int>(bucket)));
  const auto steps = 1U << bits;
  const auto unit = static_cast<double>(grain);
  if (bucket < 2 * steps) return bucket * unit;
  return std::ldexp(steps + bucket % steps, static_cast<int>(bucket / steps) - 1) * unit;
}

double Buckets::below(std::uint32_t bucket) const {
  if (kind == slots) {
    // The last slot has no upper bound: as wide as a slot of its size.
    auto from = static_cast<double>(scale.from(static_cast<int>(bucket)));
    if (bucket + 1 < count()) return static_cast<double>(scale.below(static_cast<int>(bucket)));
    return scale.linear ? from + static_cast<double>(scale.step) : 2 * from;
  }
  const auto power = static_cast<int>(bucket >> bits) - 1;
  return from(bucket) + std::ldexp(static_cast<double>(grain), power > 0 ? power : 0);
}

std::uint32_t Buckets::of(std::uint64_t value) const {
  if (kind == slots) {
    auto steps = value / scale.step;
    if (scale.linear)
      return steps < HIST_SLOTS ? static_cast<std::uint32_t>(steps) : HIST_SLOTS - 1;
    return steps ? static_cast<std::uint32_t>(std::bit_width(steps)) - 1 : 0;
  }
  auto grains = value / grain;
  if (grains >> bits == 0) return static_cast<std::uint32_t>(grains);
  const auto power = static_cast<unsigned>(std::bit_width(grains)) - bits - 1;
  return static_cast<std::uint32_t>((power << bits) + (grains >> power));
}

std::uint32_t Buckets::count() const { return kind == slots ? HIST_SLOTS : (65 - bits) << bits; }

bool Buckets::same(const Buckets& other) const {
  return kind == other.kind && scale.step == other.scale.step &&
         scale.linear == other.scale.linear && scale.unit.suffix == other.scale.unit.suffix &&
         (kind == slots || (bits == other.bits && grain == other.grain));
}

std::uint32_t Buckets::slot(std::uint32_t bucket) const {
  // Of a grain that is the step, or an eighth of it.
  const auto steps = grain == scale.step ? 0U : 3U;
  const auto power = bucket < 8 ? std::bit_width(bucket | 1) - 1 : (bucket >> 3) + 2;
  return power > steps ? static_cast<std::uint32_t>(power) - steps : 0;
}

double Facts::lost_share() const {
  constexpr double kMost = 0.99;  // so that values which divide by the rest are numbers
  return lost ? std::min(static_cast<double>(lost) / static_cast<double>(lost + kept), kMost) : 0;
}

std::uint32_t Series::number(const Name& name) {
  auto [at, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  return at->second;
}

Series folded(Series series) {
  if (series.buckets.kind == Buckets::slots) return series;
  for (auto& interval : series.intervals)
    for (auto& [name, h] : interval.histograms) {
      std::map<std::uint32_t, std::uint64_t> slots;
      for (auto& [bucket, n] : h.counts) slots[series.buckets.slot(bucket)] += n;
      h.counts.assign(slots.begin(), slots.end());
    }
  series.buckets = {.scale = series.buckets.scale};
  return series;
}

double Series::seconds() const {
  return std::accumulate(intervals.begin(), intervals.end(), 0.0,
                         [](double sum, auto& interval) { return sum + interval.seconds; });
}

}  // namespace coretap::compare
