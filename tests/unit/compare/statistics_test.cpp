#include "compare/statistics.hpp"

#include <algorithm>

#include "compare/comparison.hpp"
#include "compare/worlds.hpp"
#include "expect.hpp"

namespace coretap::compare {

namespace {

struct Known {
  double x, freedom, result;
};

/// scipy.stats.t: 2 * sf(x, freedom)
constexpr Known kProbabilities[] = {
    {0.01, 1, 9.936340144702e-01},     {0.5, 1, 7.048327646991e-01},
    {2, 1, 2.951672353009e-01},        {3.5, 1, 1.771710655658e-01},
    {8, 1, 7.916684832113e-02},        {40, 1, 1.591217982405e-02},
    {0.01, 1.7, 9.930677064265e-01},   {0.5, 1.7, 6.741845249243e-01},
    {2, 1.7, 2.054901128527e-01},      {3.5, 1.7, 9.149713537280e-02},
    {8, 1.7, 2.394538296105e-02},      {40, 1.7, 1.576730615727e-03},
    {0.01, 2, 9.929291089582e-01},     {0.5, 2, 6.666666666667e-01},
    {2, 2, 1.835034190723e-01},        {3.5, 2, 7.282735005447e-02},
    {8, 2, 1.526807216534e-02},        {40, 2, 6.244146721847e-04},
    {0.01, 5.3, 9.923868796141e-01},   {0.5, 5.3, 6.371434703184e-01},
    {2, 5.3, 9.871235302287e-02},      {3.5, 5.3, 1.570997856582e-02},
    {8, 5.3, 3.743445669280e-04},      {40, 5.3, 8.801601149192e-08},
    {0.01, 7, 9.923003176436e-01},     {0.5, 7, 6.324071356893e-01},
    {2, 7, 8.561932856298e-02},        {3.5, 7, 9.993040881886e-03},
    {8, 7, 9.114921170875e-05},        {40, 7, 1.590217998485e-09},
    {0.01, 14, 9.921623908414e-01},    {0.5, 14, 6.248419162397e-01},
    {2, 14, 6.528795288911e-02},       {3.5, 14, 3.535208105859e-03},
    {8, 14, 1.369456680022e-06},       {40, 14, 7.768790800229e-16},
    {0.01, 30, 9.920874925732e-01},    {0.5, 30, 6.207230048851e-01},
    {2, 30, 5.462504496298e-02},       {3.5, 30, 1.476807437644e-03},
    {8, 30, 6.265822475701e-09},       {40, 30, 1.372604519441e-27},
    {0.01, 200.5, 9.920312303117e-01}, {0.5, 200.5, 6.176233826232e-01},
    {2, 200.5, 4.684980462644e-02},    {3.5, 200.5, 5.732521172341e-04},
    {8, 200.5, 9.789873078665e-14},    {40, 200.5, 1.620000045048e-97},
};

/// scipy.stats.t.ppf(x, freedom)
constexpr Known kQuantiles[] = {
    {0.8, 1, 1.3763819205},      {0.975, 1, 12.7062047364},    {0.995, 1, 63.6567411629},
    {0.9995, 1, 636.6192494319}, {0.8, 2, 1.0606601718},       {0.975, 2, 4.3026527299},
    {0.995, 2, 9.9248432009},    {0.9995, 2, 31.5990545770},   {0.8, 3.4, 0.9605358465},
    {0.975, 3.4, 2.9807735026},  {0.995, 3.4, 5.2090325081},   {0.9995, 3.4, 10.6310499439},
    {0.8, 7, 0.8960296443},      {0.975, 7, 2.3646242510},     {0.995, 7, 3.4994832974},
    {0.9995, 7, 5.4078825210},   {0.8, 11.2, 0.8749026498},    {0.975, 11.2, 2.1961993996},
    {0.995, 11.2, 3.0946984407}, {0.9995, 11.2, 4.4110090935}, {0.8, 14, 0.8680547816},
    {0.975, 14, 2.1447866879},   {0.995, 14, 2.9768427341},    {0.9995, 14, 4.1404541127},
    {0.8, 60, 0.8476530063},     {0.975, 60, 2.0002978211},    {0.995, 60, 2.6602830312},
    {0.9995, 60, 3.4602004692},  {0.8, 1000, 0.8419808222},    {0.975, 1000, 1.9623390808},
    {0.995, 1000, 2.5807546981}, {0.9995, 1000, 3.3002826484},
};

TEST(CompareStatistics, StudentsDistributionIsThatOfScipy) {
  for (auto& k : kProbabilities)
    EXPECT_NEAR(two_sided_p(k.x, k.freedom) / k.result, 1, 1e-9) << k.x << ' ' << k.freedom;
  for (auto& k : kQuantiles)
    EXPECT_NEAR(t_quantile(k.x, k.freedom), k.result, 1e-8 * k.result) << k.x << ' ' << k.freedom;
  EXPECT_EQ(two_sided_p(0, 7), 1);
  EXPECT_EQ(two_sided_p(INFINITY, 7), 0);
}

/// scipy.stats.ttest_ind(b, a, equal_var=False)
TEST(CompareStatistics, WelchsTestIsThatOfScipy) {
  const double a[] = {1.1, 2.3, 0.7, 1.9, 2.2, 1.4, 1.8, 0.9};
  const double b[] = {2.1, 2.9, 3.7, 2.4, 1.9, 3.2, 2.8, 4.4};
  auto d = difference(from_recordings(a), from_recordings(b), 0);
  EXPECT_NEAR(d.change, 1.3875, 1e-12);
  EXPECT_NEAR(d.p, 0.0022287669194156886, 1e-12);
  EXPECT_NEAR(d.freedom, 12.735341281526244, 1e-9);
  EXPECT_NEAR(d.low, 0.2876763277724197, 1e-9);
  EXPECT_NEAR(d.high, 2.4873236722275798, 1e-9);
  EXPECT_NEAR(lag_1(a), -0.5239414081733137, 1e-12);
  // numpy: 0.3638521579668628 * (t.ppf(.995, f) + t.ppf(.8, f))
  EXPECT_NEAR(d.smallest,
              0.3638521579668628 * (t_quantile(0.995, d.freedom) + t_quantile(0.8, d.freedom)),
              1e-9);
}

TEST(CompareStatistics, LostEventsWidenTheRange) {
  Estimate a{.value = 1, .variance = 0.01, .freedom = 7, .low = 0.9, .high = 1.2};
  Estimate b{.value = 2, .variance = 0.01, .freedom = 7, .low = 1.7, .high = 2.1};
  auto with = difference(a, b, 0);
  a.low = a.high = 1;
  b.low = b.high = 2;
  auto without = difference(a, b, 0);
  EXPECT_NEAR(with.low, without.low - 0.2 - 0.3, 1e-12);
  EXPECT_NEAR(with.high, without.high + 0.1 + 0.1, 1e-12);
  EXPECT_GT(with.p, without.p);
  // A change that lost events explain is none.
  a.high = 2;
  EXPECT_EQ(difference(a, b, 0).p, 1);
}

TEST(CompareStatistics, HolmsProcedure) {
  // statsmodels.stats.multitest.multipletests(method="holm")
  double p[] = {0.01, 0.04, 0.03, 0.005};
  holm(p);
  const double expected[] = {0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < 4; i++) EXPECT_NEAR(p[i], expected[i], 1e-12);
  holm(std::span<double>());
}

TEST(CompareStatistics, BucketsContainTheirValues) {
  for (std::uint64_t step : {1, 7, 8, 512, 1000, 1024, 1'000'000})
    for (auto& buckets : {Buckets::fine_of({.step = step}), Buckets::of_values(unit::ns),
                          Buckets{.scale = {.step = step}}}) {
      Random random(step);
      for (int i = 0; i < 20'000; i++) {
        auto value = random.next() >> (random.next() % 64);
        auto bucket = buckets.of(value);
        ASSERT_LT(bucket, buckets.count());
        // Bounds are numbers of 53 bits.
        EXPECT_LE(buckets.from(bucket), static_cast<double>(value) * (1 + 1e-15));
        if (bucket + 1 >= buckets.count()) continue;
        EXPECT_EQ(buckets.below(bucket), buckets.from(bucket + 1)) << bucket;
        EXPECT_GE(buckets.below(bucket) * (1 + 1e-15), static_cast<double>(value)) << value;
        if (value < 1ULL << 52) {
          EXPECT_GT(buckets.below(bucket), static_cast<double>(value));
        }
      }
    }
}

TEST(CompareStatistics, FineBucketsFoldToSlots) {
  for (std::uint64_t step : {1, 7, 8, 512, 1000, 1024, 4096, 1'000'000, 1'000'000'000}) {
    const Buckets slots{.scale = {.step = step}};
    const auto fine = Buckets::fine_of(slots.scale);
    auto check = [&](std::uint64_t value) {
      ASSERT_EQ(fine.slot(fine.of(value)), slots.of(value)) << value << ' ' << step;
    };
    Random random(step);
    for (int i = 0; i < 120'000; i++) check(random.next() >> (random.next() % 64));
    for (std::uint64_t i = 0; i < 5000; i++) check(i);
    for (int power = 0; power < 64; power++)
      for (auto near : {-1, 0, 1}) check((1ULL << power) * step + static_cast<std::uint64_t>(near));
    EXPECT_LE(fine.count(), 496U);
  }
}

/// Against the sorted values themselves.
TEST(CompareStatistics, PercentilesOfFineBuckets) {
  Random random(7);
  const auto buckets = Buckets::fine_of({.unit = unit::ns, .step = 1000});
  std::vector<std::uint64_t> values;
  Sums sums;
  for (int i = 0; i < 200'000; i++) {
    values.push_back(static_cast<std::uint64_t>(3e5 * std::exp(0.8 * random.normal())));
    sums.add(Histogram{.counts = {{buckets.of(values.back()), 1}}, .total = values.back()});
  }
  std::ranges::sort(values);
  for (auto share : {0.5, 0.9, 0.99}) {
    auto exact = static_cast<double>(values[static_cast<std::size_t>(share * 200'000)]);
    EXPECT_NEAR(percentile(sums, buckets, share) / exact, 1, 0.005) << share;
  }
  const auto bound = buckets.of(1'024'000);
  auto above = std::ranges::count_if(
      values, [&](auto v) { return static_cast<double>(v) >= buckets.from(bound); });
  EXPECT_EQ(share_above(sums, bound), static_cast<double>(above) / 200'000);
  EXPECT_EQ(percentile({}, buckets, 0.5), 0);
}

/// A shift of 5 % at p99, of a million values before and after.
TEST(CompareStatistics, AShiftIsSeenWithinHalfAPercent) {
  constexpr std::size_t kValues = 1'000'000, kAt = kValues / 100 * 99;
  for (std::uint64_t seed : {1, 2}) {
    Random random(seed);
    const auto median = 2e5 * std::exp2(random.uniform());
    const auto fine = Buckets::fine_of({.unit = unit::ns, .step = 1000});
    std::vector<double> exact, shown;
    for (double shift : {1.0, 1.05}) {
      std::vector<std::uint64_t> values;
      Histogram h;
      std::vector<std::uint64_t> counts(fine.count());
      for (std::size_t i = 0; i < kValues; i++) {
        const auto tail = random.uniform() < 0.02 ? 6 : 1;
        values.push_back(
            static_cast<std::uint64_t>(median * shift * tail * std::exp(0.8 * random.normal())));
        counts[fine.of(values.back())]++;
      }
      for (std::uint32_t i = 0; i < counts.size(); i++)
        if (counts[i]) h.counts.emplace_back(i, counts[i]);
      Sums sums;
      sums.add(h);
      std::ranges::nth_element(values, values.begin() + kAt);
      exact.push_back(static_cast<double>(values[kAt]));
      shown.push_back(percentile(sums, fine, 0.99));
      EXPECT_NEAR(shown.back() / exact.back(), 1, 0.005) << seed << ' ' << shift;
    }
    EXPECT_NEAR(shown[1] / shown[0], exact[1] / exact[0], 0.005) << seed;
  }
}

/// Of powers of two only the range is known in which a percentile is.
TEST(CompareStatistics, SlotsGiveRangesAndFineBucketsValues) {
  Random random(9);
  const World world{.values = 1e6};
  const auto a = simulated(world, 3e5, 0, random), b = simulated(world, 3e5, 0.05, random);
  auto p99 = [](const Comparison& c) {
    return *std::ranges::find_if(c.lines, [](auto& l) { return l.what == "p99" && l.key.empty(); });
  };
  const auto fine = p99(*compare({a}, {b}, {.at_least = 0.01}));
  ASSERT_TRUE(fine.change);
  EXPECT_NEAR(*fine.change, 0.05, 0.02);
  EXPECT_EQ(fine.verdict, Line::Verdict::more);
  const auto wide = p99(*compare({folded(a)}, {folded(b)}, {.at_least = 0.01}));
  EXPECT_EQ(wide.kind, Line::Kind::range);
  EXPECT_FALSE(wide.change);
}

}  // namespace

}  // namespace coretap::compare
