#include "base/rate_limit.hpp"

#include <deque>

#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kStart = 12'345 * kSecond;

/// Number of `events`, at this interval, that are let through.
std::uint64_t taken(RateLimit& limit, std::uint64_t from, std::uint64_t apart,
                    std::uint64_t events) {
  std::uint64_t n = 0;
  for (std::uint64_t i = 0; i < events; i++) n += limit.take(from + i * apart);
  return n;
}

TEST(RateLimit, AFullBucketAtTheStartThenOneByOne) {
  RateLimit limit(100);
  EXPECT_EQ(taken(limit, kStart, 0, 1000), 100u);
  // One event per hundredth of a second.
  EXPECT_FALSE(limit.take(kStart + kSecond / 100 - 1));
  EXPECT_TRUE(limit.take(kStart + kSecond / 100));
  EXPECT_FALSE(limit.take(kStart + kSecond / 100));
  // Out-of-order times add nothing, and a pause adds one second at most.
  EXPECT_FALSE(limit.take(kStart - kSecond));
  EXPECT_FALSE(limit.take(kStart));
  EXPECT_TRUE(limit.take(kStart + kSecond / 50));
  EXPECT_EQ(taken(limit, kStart + 3600 * kSecond, 0, 1000), 100u);
}

TEST(RateLimit, SlowOnesAllPassAndNothingIsRounded) {
  RateLimit limit(100), one(1), seven(7), most(RateLimit::kMost);
  EXPECT_EQ(taken(limit, kStart, kSecond / 100, 10'000), 10'000u);
  EXPECT_EQ(taken(one, kStart, kSecond, 10), 10u);
  // 7 a second, requested every 3 ms: not a whole number of events in any such interval.
  EXPECT_EQ(taken(seven, kStart, 3'000'000, 1'000'000), 7u + 7 * 3000 - 1);
  EXPECT_EQ(taken(most, kStart, 1, 1000), 1000u);
  EXPECT_TRUE(most.take(UINT64_MAX));
}

TEST(RateLimit, NoSecondHasMoreThanTwice) {
  std::mt19937 random(1);
  RateLimit limit(50);
  std::deque<std::uint64_t> last;
  std::uint64_t now = kStart, all = 0;
  for (int i = 0; i < 200'000; i++) {
    now += random() % 8 ? random() % 1'000'000 : random() % 100'000'000;
    if (!limit.take(now)) continue;
    all++;
    last.push_back(now);
    while (last.front() + kSecond < now) last.pop_front();
    ASSERT_LE(last.size(), 100u);
  }
  EXPECT_LE(all, 50 + 50 * (now - kStart) / kSecond + 1);
}

}  // namespace
}  // namespace coretap
