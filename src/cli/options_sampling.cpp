// Options for the sampling rate of perf events.
#include <algorithm>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"

namespace coretap::shared {

namespace {

constexpr char kMaxRate[] = "kernel.perf_event_max_sample_rate";
constexpr std::uint64_t kMostPeriod = 10'000'000'000;

}  // namespace

Option frequency(std::string_view doc, std::uint64_t most) {
  return same_everywhere(
      value('F', "frequency", "HZ", doc, [=](Config& c, std::string_view text) -> Result<void> {
        // The kernel lowers its limit if samples take too long.
        auto kernels = read_number("/proc/sys/kernel/perf_event_max_sample_rate");
        auto limit =
            kernels && *kernels > 0 ? std::min(most, static_cast<std::uint64_t>(*kernels)) : most;
        auto n = take_number("--frequency", text, 1, limit);
        if (!n) {
          auto error = n.error();
          if (limit < most) error.hint = fmt::format("{} is {}", kMaxRate, limit);
          return error;
        }
        c.sampling = at_hz(*n);
        return {};
      }));
}

Option sample_period(char letter, std::string_view doc, std::uint64_t least,
                     std::string_view alias) {
  return same_everywhere(
      value(letter, "period", "PERIOD", doc, [=](Config& c, std::string_view text) -> Result<void> {
        auto n = take_number("--period", text, least, kMostPeriod);
        if (!n) return n.error();
        c.sampling = every(*n);
        return {};
      }).also(alias));
}

Option cpu(char letter) {
  return same_everywhere(value(
      letter, "cpu", "CPU", "only this CPU",
      [](Config& c, std::string_view text) -> Result<void> {
        auto n = parse_unsigned(text);
        auto all = online_cpus();
        if (!n || std::find(all.begin(), all.end(), static_cast<int>(*n)) == all.end())
          return usage(fmt::format("--cpu: there is no CPU '{}'", text),
                       "/sys/devices/system/cpu/online lists them");
        c.places.cpu = static_cast<std::uint32_t>(*n);
        return {};
      },
      Complete::cpu));
}

}  // namespace coretap::shared
