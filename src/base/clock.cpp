#include "coretap/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/present_clock.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

std::int64_t nanoseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

/// Offset of this time namespace's CLOCK_MONOTONIC from the kernel's, which BPF programs read
/// (time_namespaces(7)).
struct NamespaceOffset {
  std::int64_t ns = 0;
  int error = 0;
};

const NamespaceOffset& namespace_offset() {
  static const NamespaceOffset offset = []() -> NamespaceOffset {
    constexpr std::string_view kFirst = "monotonic";
    auto text = read_file("/proc/self/timens_offsets", 256);   // "monotonic    86400    0"
    if (!text) return {.error = errno == ENOENT ? 0 : errno};  // ENOENT: no time namespaces
    if (!text->starts_with(kFirst)) return {.error = EINVAL};
    char* rest = text->data() + kFirst.size();
    const auto seconds = std::strtoll(rest, &rest, 10);
    return {.ns = seconds * 1'000'000'000 + std::strtoll(rest, nullptr, 10)};
  }();
  return offset;
}

std::int64_t kernel_monotonic() { return nanoseconds(CLOCK_MONOTONIC) - namespace_offset().ns; }

std::optional<std::uint64_t> held;           // hold_clock()
std::optional<std::int64_t> recorded_ahead;  // set_wall_ahead()

/// Offset of the wall clock from the monotonic clock, in ns.
struct Ahead {
  std::int64_t by, within;  ///< the error is at most `within`
};

Ahead ask() {
  auto before = kernel_monotonic();
  auto wall = nanoseconds(CLOCK_REALTIME);
  auto half = (kernel_monotonic() - before) / 2;
  return {wall - before - half, half};
}

/// The wall clock may be set while a tool runs. It is read once for moments within 100 ms: where
/// clock_gettime() is a system call, a tool that traces it would trace itself. Unless the clock is
/// set, both clocks run at the same rate: the first offset is kept then, so that times keep the
/// order of events.
std::int64_t to_wall(std::uint64_t monotonic) {
  constexpr std::int64_t kClose = 100'000'000;
  constexpr std::uint64_t kLast = std::uint64_t{1} << 62;  // 146 years
  constexpr int kAttempts = 5;  // at the start: this task may be preempted between the readings
  static Ahead ahead{};
  static std::int64_t asked_for = -1;
  // Small enough that adding the wall clock's time cannot overflow.
  auto moment = static_cast<std::int64_t>(std::min(monotonic, kLast));
  if (recorded_ahead) return moment + *recorded_ahead;
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

/// A moment of the wall clock. A record may have any time, including one before 1970.
struct Moment {
  explicit Moment(std::int64_t wall_ns)
      : seconds(wall_ns / kSecond - (wall_ns % kSecond < 0)),
        ns((wall_ns % kSecond + kSecond) % kSecond) {}

  tm local() const {
    tm t{};
    localtime_r(&seconds, &t);
    return t;
  }
  tm utc() const {
    tm t{};
    gmtime_r(&seconds, &t);
    return t;
  }

  static constexpr std::int64_t kSecond = 1'000'000'000;
  time_t seconds;
  std::int64_t ns;
};

std::string time_of_day(const tm& t, const Moment& moment) {
  return fmt::format("{:02}:{:02}:{:02}.{:03}", t.tm_hour, t.tm_min, t.tm_sec,
                     moment.ns / 1'000'000);
}

}  // namespace

std::uint64_t present_monotonic_ns() { return static_cast<std::uint64_t>(kernel_monotonic()); }

std::uint64_t monotonic_ns() {
  return held ? *held : static_cast<std::uint64_t>(kernel_monotonic());
}

void hold_clock(std::uint64_t monotonic) { held = monotonic; }
void release_clock() {
  held.reset();
  recorded_ahead.reset();
}
void set_wall_ahead(std::int64_t ns) { recorded_ahead = ns; }

std::int64_t wall_ahead_ns() {
  const auto now = kernel_monotonic();
  return to_wall(static_cast<std::uint64_t>(now)) - now;
}

int clock_error() { return namespace_offset().error; }

std::int64_t since_1970_ns(std::uint64_t monotonic) { return to_wall(monotonic); }

std::string wall_time() {
  const auto local =
      held ? Moment(to_wall(*held)).local() : Moment(nanoseconds(CLOCK_REALTIME)).local();
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::string wall_time(std::uint64_t monotonic) {
  const Moment moment(to_wall(monotonic));
  return time_of_day(moment.local(), moment);
}

std::string utc_time(std::uint64_t monotonic) {
  const Moment moment(to_wall(monotonic));
  return time_of_day(moment.utc(), moment);
}

std::string iso_time(std::uint64_t monotonic) {
  const Moment moment(to_wall(monotonic));
  auto local = moment.local();
  long zone = local.tm_gmtoff / 60;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}{}{:02}:{:02}", local.tm_year + 1900,
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                     moment.ns / 1000, zone < 0 ? '-' : '+', (zone < 0 ? -zone : zone) / 60,
                     (zone < 0 ? -zone : zone) % 60);
}

std::optional<std::uint64_t> time_in_iso(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000000+00:00";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); i++) {
    bool fits = kForm[i] == '0'   ? text[i] >= '0' && text[i] <= '9'
                : kForm[i] == '+' ? text[i] == '+' || text[i] == '-'
                                  : text[i] == kForm[i];
    if (!fits) return std::nullopt;
  }
  auto number = [&](std::size_t at, std::size_t digits) {
    return static_cast<int>(parse_unsigned(text.substr(at, digits)).value_or(0));
  };
  tm t{};
  t.tm_year = number(0, 4) - 1900;
  t.tm_mon = number(5, 2) - 1;
  t.tm_mday = number(8, 2);
  t.tm_hour = number(11, 2);
  t.tm_min = number(14, 2);
  t.tm_sec = number(17, 2);
  auto zone = (number(27, 2) * 60 + number(30, 2)) * 60 * (text[26] == '-' ? -1 : 1);
  auto seconds = timegm(&t) - zone;
  if (seconds < 0) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * 1'000'000'000 +
         static_cast<std::uint64_t>(number(20, 6)) * 1'000;
}

}  // namespace coretap
