#include "coretap/clock.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// The time zone of one test, as a POSIX rule, so that no zone files are needed.
class Zone {
 public:
  explicit Zone(const char* rule) {
    if (auto* old = getenv("TZ")) before_ = old;
    setenv("TZ", rule, 1);
    tzset();
  }
  ~Zone() {
    before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
    tzset();
  }

 private:
  std::optional<std::string> before_;
};

TEST(Clock, MonotonicGoesOn) {
  auto a = monotonic_ns();
  EXPECT_GT(a, 0u);
  timespec t{0, 2'000'000};
  nanosleep(&t, nullptr);
  auto b = monotonic_ns();
  EXPECT_GE(b, a + 2'000'000);
  EXPECT_LT(b, a + 60 * kSecondNs);
}

TEST(Clock, WallTimeIsLocal) {
  EXPECT_TRUE(
      std::regex_match(wall_time(), std::regex("([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)")));
  auto hour_in = [](const char* rule) {
    Zone zone(rule);
    return std::stoi(wall_time().substr(0, 2));
  };
  const int here = hour_in("UTC0"), apart = (hour_in("XXX-3") - here + 24) % 24;
  EXPECT_TRUE(apart == 3 || apart == 4) << "an hour may begin between";
}

TEST(Clock, IsoTime) {
  for (auto [rule, suffix] : {std::pair{"UTC0", "+00:00"},
                              {"XXX-5:30", "+05:30"},
                              {"XXX+3:30", "-03:30"},
                              {"XXX+0:30", "-00:30"},
                              {"XXX-14", "+14:00"}}) {
    Zone zone(rule);
    auto text = iso_time(monotonic_ns());
    EXPECT_TRUE(text.ends_with(suffix)) << text;
    EXPECT_TRUE(std::regex_match(text.substr(0, 26),
                                 std::regex("2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:"
                                            "[0-6][0-9][.][0-9]{6}")))
        << text;
  }
}

/// Microseconds since 1970 of a text in UTC.
std::int64_t microseconds(const std::string& text) {
  tm t{};
  auto* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &t);
  if (!rest) return 0;
  return timegm(&t) * 1'000'000LL + std::stoi(rest + 1);
}

TEST(Clock, IsoTimeIsThatMomentOfTheWallClock) {
  Zone utc("UTC0");
  timespec before{}, after{};
  clock_gettime(CLOCK_REALTIME, &before);
  auto now = monotonic_ns();
  auto shown = microseconds(iso_time(now));
  clock_gettime(CLOCK_REALTIME, &after);
  // Within the time that another task may take between the two calls.
  EXPECT_GE(shown, before.tv_sec * 1'000'000LL + before.tv_nsec / 1000 - 1000);
  EXPECT_LE(shown, after.tv_sec * 1'000'000LL + after.tv_nsec / 1000 + 1000);
  // Times before and after now, as in events.
  EXPECT_NEAR(static_cast<double>(microseconds(iso_time(now - 1500 * 1'000'000))),
              static_cast<double>(shown - 1'500'000), 1);
  EXPECT_NEAR(static_cast<double>(microseconds(iso_time(now + 86400 * kSecondNs))),
              static_cast<double>(shown + 86'400'000'000), 1);
}

TEST(Clock, IsoTimeKeepsTheOrder) {
  Zone utc("UTC0");
  auto start = monotonic_ns();
  for (std::uint64_t second = 0; second < 100; second++) {
    // The clock is read again in each of these steps.
    auto before = iso_time(start + second * kSecondNs);
    auto after = iso_time(start + second * kSecondNs + 150'000'000);
    ASSERT_EQ(microseconds(after) - microseconds(before), 150'000);
  }
}

}  // namespace
}  // namespace coretap
