#include "compare/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace coretap::compare {

namespace {

constexpr double kMostLag = 0.6;

/// The regularised incomplete beta function by its continued fraction (Lentz's method), for
/// x < (a + 1) / (a + b + 2), where it converges fast.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kPrecision = 1e-15;
  constexpr int kMost = 300;
  auto not_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m <= kMost; m++) {
    for (auto term : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                      -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 / not_zero(1 + term * d);
      c = not_zero(1 + term / c);
      h *= d * c;
    }
    if (std::abs(d * c - 1) < kPrecision) break;
  }
  return h / a *
         std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) +
                  b * std::log1p(-x));
}

/// `rest` is 1 - x, which a caller knows more precisely.
double incomplete_beta(double a, double b, double x, double rest) {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  return x < (a + 1) / (a + b + 2) ? beta_fraction(a, b, x) : 1 - beta_fraction(b, a, rest);
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of the mean of independent values.
double variance_of_mean(std::span<const double> values, double mean) {
  double squares = 0;
  for (auto v : values) squares += (v - mean) * (v - mean);
  const auto n = static_cast<double>(values.size());
  return squares / (n * (n - 1));
}

/// `slack`: added to the range on each side, and taken off the change before the test.
Difference judged(double change, double error, double freedom, double down, double up) {
  Difference d{.change = change, .error = error, .freedom = freedom};
  const auto sure = t_quantile((1 + kSure) / 2, freedom);
  d.low = change - down - sure * error;
  d.high = change + up + sure * error;
  const auto least = std::max({0.0, change - down, -change - up});
  d.p = error > 0 ? two_sided_p(least / error, freedom) : least > 0 ? 0 : 1;
  d.smallest = (sure + t_quantile(kFound, freedom)) * error + std::max(down, up);
  return d;
}

}  // namespace

double two_sided_p(double t, double freedom) {
  if (!std::isfinite(t)) return 0;
  const auto all = freedom + t * t;
  return incomplete_beta(freedom / 2, 0.5, freedom / all, t * t / all);
}

double t_quantile(double probability, double freedom) {
  const auto p = 2 * (1 - probability);
  double low = 0, high = 1;
  while (two_sided_p(high, freedom) > p && high < 1e9) high *= 2;
  for (int i = 0; i < 60; i++) {
    auto middle = (low + high) / 2;
    (two_sided_p(middle, freedom) > p ? low : high) = middle;
  }
  return (low + high) / 2;
}

void Sums::add(const Histogram& h, double times) {
  for (auto& [bucket, n] : h.counts) {
    if (bucket >= counts.size()) counts.resize(bucket + 1);
    counts[bucket] += times * static_cast<double>(n);
    count += times * static_cast<double>(n);
  }
  total += times * static_cast<double>(h.total);
}

void Sums::add(const Sums& more, double times) {
  if (counts.size() < more.counts.size()) counts.resize(more.counts.size());
  for (std::size_t i = 0; i < more.counts.size(); i++) counts[i] += times * more.counts[i];
  count += times * more.count;
  total += times * more.total;
  seconds += times * more.seconds;
}

double percentile(const Sums& sums, const Buckets& buckets, double share) {
  const auto rank = std::clamp(share, 0.0, 1.0) * sums.count;
  double before = 0;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < sums.counts.size(); i++) {
    const auto n = sums.counts[i];
    if (n <= 0) continue;
    last = i;
    if (before + n >= rank) {
      // Without a lower bound the scale is linear, from half a value on.
      const auto part = std::max(rank - before, 0.5) / n;
      const auto from = buckets.from(i), below = buckets.below(i);
      return from > 0 ? from * std::pow(below / from, std::min(part, 1.0)) : below * part;
    }
    before += n;
  }
  return sums.count > 0 ? buckets.below(last) : 0;
}

double share_above(const Sums& sums, std::uint32_t bucket) {
  double above = 0;
  for (std::size_t i = bucket; i < sums.counts.size(); i++) above += sums.counts[i];
  return sums.count > 0 ? above / sums.count : 0;
}

double lag_1(std::span<const double> values) {
  const auto mean = mean_of(values);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); i++) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  return squares > 0 ? products / squares : 0;
}

/// The estimate of a correlation from few values is low by about one part in their number.
double inflation(double lag, std::size_t values) {
  const auto r = std::clamp(lag, 0.0, kMostLag) + 1 / static_cast<double>(values);
  return (1 + r) / (1 - r);
}

/// The values of intervals are taken for a load whose correlation decays by the same factor in each
/// interval, with the independent noise of single events added.
Correlation correlation(const Estimate& a, const Estimate& b) {
  constexpr double kMost = 0.95, kLeastLoad = 0.3, kErrors = 1.5;
  if (std::min(a.intervals, b.intervals) < kLeastIntervals) return {};
  double lag = 0, load = 0;  // part of the load in the variance
  for (auto* e : {&a, &b}) {
    const auto n = static_cast<double>(e->intervals) - 1;
    lag += (e->interval_lag + 1 / n) / (1 - 4 / n) / 2;  // without its bias
    if (e->interval_variance > 0)
      load += std::clamp(1 - e->least / e->interval_variance, 0.0, 1.0) / 2;
  }
  const auto n = static_cast<double>(a.intervals + b.intervals);
  lag = std::clamp(lag, 0.0, 1.0);
  lag += kErrors * std::sqrt((1 - lag * lag) / n);
  const auto r = std::min(lag / std::max(load, kLeastLoad), kMost);
  const auto size = n / 2 / kGroups, rest = 1 - std::pow(r, size),
             scale = size * size * (1 - r) * (1 - r);
  const auto variance = (size * (1 - r * r) - 2 * r * rest) / scale;
  const auto covariance = r * rest * rest / scale;
  return {load * covariance / (load * variance + (1 - load) / size),
          1 / (load * (1 + r) / (1 - r) + 1 - load)};
}

Estimate jackknife(double whole, std::span<const double> without) {
  const auto n = static_cast<double>(without.size());
  std::vector<double> pseudo;
  pseudo.reserve(without.size());
  for (auto v : without) pseudo.push_back(n * whole - (n - 1) * v);
  return {.value = whole,
          .variance = variance_of_mean(pseudo, mean_of(pseudo)),
          .lag = lag_1(pseudo),
          .freedom = n - 1,
          .low = whole,
          .high = whole};
}

Estimate from_recordings(std::span<const double> values) {
  const auto mean = mean_of(values);
  return {.value = mean,
          .variance = variance_of_mean(values, mean),
          .freedom = static_cast<double>(values.size()) - 1,
          .low = mean,
          .high = mean};
}

Difference difference(const Estimate& a, const Estimate& b, std::size_t groups) {
  double factor = 1, fa = a.freedom, fb = b.freedom;
  if (groups) {
    const auto of = correlation(a, b);
    factor = std::max(inflation((a.lag + b.lag) / 2, groups), (1 + of.group) / (1 - of.group));
    // Correlated intervals are as good as fewer independent ones.
    auto independent = [&](const Estimate& e, double& freedom) {
      if (!e.intervals) return;
      freedom = std::clamp(static_cast<double>(e.intervals) * of.independent - 1, 1.0, freedom);
    };
    independent(a, fa);
    independent(b, fb);
  }
  const auto va = std::max(a.variance * factor, a.least);
  const auto vb = std::max(b.variance * factor, b.least);
  const auto squares = va * va / fa + vb * vb / fb;
  const auto freedom = squares > 0 ? (va + vb) * (va + vb) / squares : fa + fb;
  return judged(b.value - a.value, std::sqrt(va + vb), freedom,
                (a.high - a.value) + (b.value - b.low), (a.value - a.low) + (b.high - b.value));
}

Difference paired(std::span<const double> differences, double slack) {
  const auto mean = mean_of(differences);
  const auto variance =
      variance_of_mean(differences, mean) * inflation(lag_1(differences), differences.size());
  return judged(mean, std::sqrt(variance), static_cast<double>(differences.size()) - 1, slack,
                slack);
}

void holm(std::span<double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](auto a, auto b) { return p[a] < p[b]; });
  double least = 0;
  for (std::size_t i = 0; i < order.size(); i++) {
    auto& each = p[order[i]];
    least = each = std::clamp(each * static_cast<double>(p.size() - i), least, 1.0);
  }
}

double longer_for(const Estimate& one, double change) {
  auto smallest = difference(one, one, kGroups).smallest;
  return std::pow(smallest / std::log1p(change), 2);
}

}  // namespace coretap::compare
