// Buckets of fine counts, and percentiles from them.
#include "coretap/percentiles.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

/// As the kernel program has it, by floating point.
std::uint32_t bucket_of(std::uint64_t value) {
  if (value < 64) return static_cast<std::uint32_t>(value);
  auto power = static_cast<std::uint32_t>(std::ilogb(static_cast<long double>(value)));
  return (power - 5) * 64 + static_cast<std::uint32_t>((value >> (power - 6)) - 64);
}

TEST(Percentiles, BucketsFollowEachOther) {
  EXPECT_EQ(bucket_of(UINT64_MAX), 3775u);
  for (std::uint32_t bucket = 0; bucket < 3775; bucket++) {
    auto from = fine_from(bucket), next = fine_from(bucket + 1);
    ASSERT_LT(from, next) << bucket;
    ASSERT_LE(static_cast<double>(next - from), std::max(1.0, static_cast<double>(from) / 64));
    EXPECT_EQ(bucket_of(from), bucket);
    EXPECT_EQ(bucket_of(next - 1), bucket);
  }
}

TEST(Percentiles, WithinOnePercentOfTheValues) {
  std::mt19937_64 random(1);
  Numbers values;
  FineCounts counts;
  for (int i = 0; i < 10'000; i++) {
    values.push_back(random() >> (random() % 60));
    counts[bucket_of(values.back())]++;
  }
  std::sort(values.begin(), values.end());
  for (double percent : {0.0, 1.0, 16.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    auto rank = std::max(1.0, std::ceil(static_cast<double>(values.size()) * percent / 100));
    auto truth = static_cast<double>(values[static_cast<std::size_t>(rank) - 1]);
    EXPECT_NEAR(static_cast<double>(fine_percentile(counts, percent)), truth, truth * 0.008 + 0.5);
  }
  EXPECT_EQ(fine_percentile({}, 50), 0u);
}

}  // namespace
}  // namespace coretap
