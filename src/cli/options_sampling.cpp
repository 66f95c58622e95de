// Options for the sampling rate of perf events.
#include <algorithm>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"
#include "kernel/perf_events.hpp"

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
        c.sampling.hz = *n;
        return {};
      }));
}

Option sample_period(char letter, std::string_view doc, std::uint64_t least,
                     std::string_view alias) {
  return same_everywhere(
      value(letter, "period", "PERIOD", doc, [=](Config& c, std::string_view text) -> Result<void> {
        auto n = take_number("--period", text, least, kMostPeriod);
        if (!n) return n.error();
        c.sampling.period = *n;
        return {};
      }).also(alias));
}

Option of_perf_events(Option option) {
  return one_of(std::move(option), [] {
    std::vector<Completion> all;
    for (auto& name : perf_event_names()) all.push_back({name});
    return all;
  });
}

Option sampled_event(char letter) {
  auto option = same_everywhere(value(
      letter, "event", "EVENT",
      "sample this event of perf(1) instead of the clock: page-faults, context-switches, cycles, "
      "cache-misses, LLC-load-misses, r01c2 (raw)",
      [](Config& c, std::string_view text) -> Result<void> {
        auto event = perf_event(text);
        if (!event) {
          auto error = event.error();
          error.what = fmt::format("--event: {}", error.what);
          return error;
        }
        if (event->is_tracepoint())
          return usage(fmt::format("--event: '{}' is a tracepoint", text),
                       fmt::format("coretap stackcount t:{}", text));
        c.sampling.event = text;
        return {};
      }));
  return of_perf_events(std::move(option));
}

Result<void> check_sampled_event(const Config& c) {
  auto event = perf_event(c.sampling.event.empty() ? "cpu-clock" : c.sampling.event);
  if (!event) return event.error();
  if (auto least = least_period(*event); c.sampling.period && c.sampling.period < least)
    return usage(fmt::format("--period: '{}' is not a number from {} to {}", c.sampling.period,
                             least, kMostPeriod),
                 "a shorter period can keep a CPU in the interrupts of the event");
  return {};
}

Result<void> look_up_sampled_event(Config& c) {
  if (c.sampling.event.empty()) return {};
  auto why = perf_event_refusal(c.sampling.event);
  if (why.empty()) return {};
  return Error{fmt::format("cannot sample {}", c.sampling.event), why,
               "software events are everywhere: cpu-clock, page-faults, context-switches, "
               "cpu-migrations",
               kUnsupported};
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
