#include "unwind/extents.hpp"

#include "expect.hpp"

namespace coretap::unwind {
TEST(Extents, WrongGivesDoNoHarm) {
  Extents room(20);
  EXPECT_EQ(room.take(20), 0U);
  room.give(20, 5);
  room.give(UINT32_MAX, UINT32_MAX);
  room.give(3, 0);
  EXPECT_EQ(room.free(), 0U);
  room.give(15, UINT32_MAX);
  EXPECT_EQ(room.free(), 5U);
  room.give(5, 5);
  room.give(5, 5);
  room.give(0, 20);
  EXPECT_TRUE(room.empty());
  EXPECT_EQ(room.take(20), 0U);
}

TEST(Extents, WithoutAnyRoom) {
  Extents room(0);
  EXPECT_EQ(room.take(1), std::nullopt);
  EXPECT_EQ(room.take(0), 0U);
  room.give(0, 1);
  EXPECT_EQ(room.free(), 0U);
  EXPECT_TRUE(room.empty());
}

TEST(Extents, AgreeWithAListOfWhatIsTaken) {
  constexpr std::uint32_t kSize = 512;
  std::mt19937 random(20240229);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  Extents room(kSize);
  std::vector<bool> taken(kSize);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> held;
  int refused = 0;
  for (int step = 0; step < 50'000; ++step) {
    if (below(2) == 0) {
      const std::uint32_t count = 1 + below(40);
      const auto place =
          std::search_n(taken.begin(), taken.end(), static_cast<std::ptrdiff_t>(count), false);
      const auto got = room.take(count);
      ASSERT_EQ(got.has_value(), place != taken.end()) << step;
      if (got) {
        ASSERT_EQ(*got, place - taken.begin()) << step;
        std::fill_n(place, count, true);
        held.emplace_back(*got, count);
      } else {
        ++refused;
      }
    } else {
      std::pair<std::uint32_t, std::uint32_t> range{below(kSize + 20), below(60)};
      if (!held.empty() && below(8) != 0) {
        std::swap(held[below(static_cast<std::uint32_t>(held.size()))], held.back());
        range = held.back();
        held.pop_back();
      }
      room.give(range.first, range.second);
      for (std::uint32_t at = range.first; at < std::min(range.first + range.second, kSize); ++at)
        taken[at] = false;
    }
    ASSERT_EQ(room.free(), std::count(taken.begin(), taken.end(), false)) << step;
    ASSERT_EQ(room.empty(), room.free() == kSize) << step;
  }
  EXPECT_GT(refused, 1000);  // it was crowded
  for (auto& [first, count] : held) room.give(first, count);
  EXPECT_EQ(room.take(kSize), 0U) << "neighbours become one";
}

}  // namespace coretap::unwind
