// Simulated recordings: the same numbers for the same seed in every run.
#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compare/series.hpp"

namespace coretap::compare {

/// xoshiro256**
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& s : state_) {
      seed += 0x9e3779b97f4a7c15;
      auto z = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      s = z ^ z >> 31;
    }
  }
  std::uint64_t next() {
    auto turned = [](std::uint64_t x, int by) { return x << by | x >> (64 - by); };
    const auto result = turned(state_[1] * 5, 7) * 9, t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = turned(state_[3], 45);
    return result;
  }
  /// 0 < value < 1
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double x, y, s;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      s = x * x + y * y;
    } while (s >= 1 || s == 0);
    const auto factor = std::sqrt(-2 * std::log(s) / s);
    has_spare_ = true;
    spare_ = y * factor;
    return x * factor;
  }
  std::uint64_t poisson(double mean) {
    if (mean > 60)
      return static_cast<std::uint64_t>(
          std::max(0.0, std::round(mean + std::sqrt(mean) * normal())));
    std::uint64_t n = 0;
    for (double p = std::exp(-mean), left = uniform(); left > p && p > 0; n++) {
      left -= p;
      p *= mean / static_cast<double>(n + 1);
    }
    return n;
  }

 private:
  std::uint64_t state_[4];
  bool has_spare_ = false;
  double spare_ = 0;
};

struct World {
  double values = 100'000;
  std::size_t intervals = 60;
  double jitter = 0;  ///< standard deviation of the logarithm of each interval's scale
  double correlation = 0;
  double shift = 0;        ///< of the second recording, 0.05: its values are 5 % larger
  double rate_jitter = 0;  ///< the same for the number of events
};

/// Lognormal values in nanoseconds, of which 2 % are six times as large.
class Shape {
 public:
  static constexpr double kSigma = 0.8, kTail = 0.02, kTimes = 6;

  Shape() {
    for (std::size_t i = 0; i < kSteps; i++)
      table_.push_back(0.5 * std::erfc(-(kFrom + static_cast<double>(i) * kStep) / std::sqrt(2.0)));
  }
  double below(double log_value) const {
    return (1 - kTail) * normal(log_value / kSigma) +
           kTail * normal((log_value - std::log(kTimes)) / kSigma);
  }

 private:
  static constexpr double kFrom = -6, kStep = 1.0 / 256;
  static constexpr std::size_t kSteps = 12 * 256 + 2;
  double normal(double z) const {
    const auto at = (z - kFrom) / kStep;
    if (at < 0) return 0;
    const auto i = static_cast<std::size_t>(at);
    if (i + 1 >= kSteps) return 1;
    return table_[i] + (at - static_cast<double>(i)) * (table_[i + 1] - table_[i]);
  }
  std::vector<double> table_;
};

/// `median` in nanoseconds.
inline Series simulated(const World& world, double median, double shift, Random& random) {
  static const Shape shape;
  Series s;
  s.facts.name = "simulated";
  s.buckets = Buckets::fine_of({.unit = unit::ns, .step = 1000});
  const auto name = s.number({"events", ""});
  double state = random.normal(), rate_state = random.normal();
  const auto fresh = std::sqrt(1 - world.correlation * world.correlation);
  for (std::size_t i = 0; i < world.intervals; i++) {
    state = world.correlation * state + fresh * random.normal();
    rate_state = world.correlation * rate_state + fresh * random.normal();
    const auto scale = std::log(median) + std::log1p(shift) + world.jitter * state;
    const auto expected = world.values / static_cast<double>(world.intervals) *
                          std::exp(world.rate_jitter * rate_state);
    Histogram h;
    double before = 0;
    for (std::uint32_t b = 0; b < s.buckets.count() && before < 1 - 1e-12; b++) {
      const auto below = shape.below(std::log(s.buckets.below(b)) - scale);
      if (auto n = below > before ? random.poisson(expected * (below - before)) : 0) {
        h.counts.emplace_back(b, n);
        h.total += static_cast<std::uint64_t>(static_cast<double>(n) * s.buckets.from(b));
        s.facts.kept += n;
      }
      before = below;
    }
    s.intervals.push_back({.seconds = 1, .histograms = {{name, std::move(h)}}});
  }
  return s;
}

/// Factors of the load that drift from interval to interval.
class Drift {
 public:
  Drift(const World& world, Random& random)
      : world_(world), random_(random), state_(random.normal()) {}
  double next() {
    state_ = world_.correlation * state_ +
             std::sqrt(1 - world_.correlation * world_.correlation) * random_.normal();
    return std::exp(world_.rate_jitter * state_);
  }

 private:
  const World& world_;
  Random& random_;
  double state_;
};

/// A table: events and bytes by key. Rates fall from key to key; `shift` is of the first key.
inline Series simulated_table(const World& world, std::size_t keys, Random& random) {
  Series s;
  s.facts.name = "table";
  s.means["bytes"] = "count";
  std::vector<Drift> drifts;
  std::vector<double> weights;
  double all = 0;
  for (std::size_t k = 0; k < keys; k++) {
    drifts.emplace_back(world, random);
    weights.push_back(1 / static_cast<double>(k + 1));
    all += weights.back();
  }
  for (std::size_t i = 0; i < world.intervals; i++) {
    Interval interval{.seconds = 1};
    for (std::size_t k = 0; k < keys; k++) {
      const auto key = "comm=c" + std::to_string(k);
      const auto mean = world.values / static_cast<double>(world.intervals) * weights[k] / all *
                        drifts[k].next() * (k ? 1 : 1 + world.shift);
      const auto n = random.poisson(mean);
      if (!n) continue;
      double bytes = 0;
      for (std::uint64_t e = 0; e < n; e++) bytes += 4096 * std::exp(random.normal());
      const auto count = s.number({"count", key}), sum = s.number({"bytes", key});
      interval.counts.emplace_back(count, n);
      interval.counts.emplace_back(sum, static_cast<std::uint64_t>(bytes));
      s.events.resize(s.names.size());
      s.events[sum] += n;
      s.facts.kept += n;
    }
    s.intervals.push_back(std::move(interval));
  }
  return s;
}

/// Stacks of one program: 8 functions that call 8 others each, and those take the time. `shift` of
/// all time is added to the function "grown".
inline Series simulated_stacks(const World& world, Random& random) {
  constexpr int kCallers = 8, kLeaves = 8, kGrown = 19;
  Series s;
  s.facts.name = "stacks";
  s.whole = "samples";
  Drift all(world, random);
  std::vector<Drift> drifts;
  for (int caller = 0; caller < kCallers; caller++) drifts.emplace_back(world, random);
  double weights = 0;
  for (int leaf = 0; leaf < kCallers * kLeaves; leaf++) weights += 1.0 / (leaf + 1);
  for (std::size_t i = 0; i < world.intervals; i++) {
    Interval interval{.seconds = 1};
    std::map<std::uint32_t, std::uint64_t> counts;
    const auto expected = world.values / static_cast<double>(world.intervals) * all.next();
    double factors[kCallers];
    for (int caller = 0; caller < kCallers; caller++)
      factors[caller] = drifts[static_cast<std::size_t>(caller)].next();
    for (int leaf = 0; leaf < kCallers * kLeaves; leaf++) {
      const auto caller = leaf % kCallers;
      const auto share =
          1.0 / (leaf + 1) / weights * factors[caller] + (leaf == kGrown ? world.shift : 0);
      const auto n = random.poisson(expected * share);
      if (!n) continue;
      const auto by = "by" + std::to_string(caller);
      const auto name = leaf == kGrown ? std::string("grown") : "f" + std::to_string(leaf);
      auto add = [&](std::string_view what, const std::string& key) {
        counts[s.number({std::string(what), key})] += n;
      };
      add("samples", "");
      add(kSelf, "function=" + name);
      for (auto& function : {std::string("main"), by, name}) add(kTotal, "function=" + function);
      for (auto& path : {std::string("prog"), std::string("prog;main"), "prog;main;" + by,
                         "prog;main;" + by + ";" + name})
        add(kStack, std::string(kStackKey) + path);
      s.facts.kept += n;
    }
    interval.counts.assign(counts.begin(), counts.end());
    s.intervals.push_back(std::move(interval));
  }
  return s;
}

}  // namespace coretap::compare
