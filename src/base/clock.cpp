#include "base/clock.hpp"

#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

namespace coretap {

namespace {

std::int64_t nanoseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

/// By how much the wall clock is ahead of the monotonic one.
struct Ahead {
  std::int64_t by, within;  ///< give or take
};

Ahead ask() {
  auto before = nanoseconds(CLOCK_MONOTONIC);
  auto wall = nanoseconds(CLOCK_REALTIME);
  auto half = (nanoseconds(CLOCK_MONOTONIC) - before) / 2;
  return {wall - before - half, half};
}

/// The wall clock may be set while a tool runs; but for moments close together it is asked once, as
/// where clocks are system calls a tool that traces those would hear itself. Unless it is set, both
/// clocks go at one pace: the first answer stays then, so that times keep the order of events.
std::int64_t to_wall(std::uint64_t monotonic) {
  constexpr std::int64_t kClose = 100'000'000;
  constexpr int kAttempts = 5;  // at the start: another task may run between the questions
  static Ahead ahead{};
  static std::int64_t asked_for = -1;
  auto moment = static_cast<std::int64_t>(monotonic);
  if (asked_for < 0) {
    ahead = ask();
    for (int i = 1; i < kAttempts; i++)
      if (auto again = ask(); again.within < ahead.within) ahead = again;
    asked_for = moment;
  } else if (std::abs(moment - asked_for) > kClose) {
    if (auto now = ask(); std::abs(now.by - ahead.by) > now.within + ahead.within) ahead = now;
    asked_for = moment;
  }
  return moment + ahead.by;
}

tm local_time(std::int64_t wall_ns) {
  time_t seconds = wall_ns / 1'000'000'000;
  tm local{};
  localtime_r(&seconds, &local);
  return local;
}

std::string time_of_day(const tm& t, std::int64_t wall_ns) {
  return fmt::format("{:02}:{:02}:{:02}.{:03}", t.tm_hour, t.tm_min, t.tm_sec,
                     wall_ns / 1'000'000 % 1000);
}

}  // namespace

std::uint64_t monotonic_ns() { return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC)); }

std::int64_t since_1970_ns(std::uint64_t monotonic) { return to_wall(monotonic); }

std::string wall_time() {
  time_t now = time(nullptr);
  tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::string wall_time(std::uint64_t monotonic) {
  auto wall = to_wall(monotonic);
  return time_of_day(local_time(wall), wall);
}

std::string utc_time(std::uint64_t monotonic) {
  auto wall = to_wall(monotonic);
  time_t seconds = wall / 1'000'000'000;
  tm utc{};
  gmtime_r(&seconds, &utc);
  return time_of_day(utc, wall);
}

std::string iso_time(std::uint64_t monotonic) {
  auto wall = to_wall(monotonic);
  auto local = local_time(wall);
  long zone = local.tm_gmtoff / 60;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}{}{:02}:{:02}", local.tm_year + 1900,
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                     wall / 1000 % 1'000'000, zone < 0 ? '-' : '+', (zone < 0 ? -zone : zone) / 60,
                     (zone < 0 ? -zone : zone) % 60);
}

}  // namespace coretap
