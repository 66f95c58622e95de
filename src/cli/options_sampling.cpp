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

Result<void> take_event(Config& c, std::string_view option, std::string_view name) {
  auto& all = c.sampling.events;
  auto event = perf_event_word(name);
  if (!event) {
    auto error = event.error();
    error.what = fmt::format("--{}: {}", option, error.what);
    return error;
  }
  if (event->is_tracepoint())
    return usage(fmt::format("--{}: '{}' is a tracepoint", option, name),
                 fmt::format("coretap stackcount t:{}", name));
  if (std::ranges::count(all, name)) return {};
  if (all.size() == kMostEvents)
    return usage(fmt::format("--{}: at most {} events at once", option, kMostEvents));
  all.emplace_back(name);
  return {};
}

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
    for (auto& name : Pmus().all_aliases()) all.push_back({name});
    return all;
  });
}

Option sampled_event(char letter) {
  auto option = same_everywhere(
      value(letter, "event", "EVENT,...",
            "sample these events of perf(1) instead of the clock, each on its own: page-faults, "
            "context-switches, cycles, cache-misses, LLC-load-misses, r01c2 (raw), "
            "cpu/mem-loads,ldlat=30/P (of a PMU)",
            [](Config& c, std::string_view text) -> Result<void> {
              for (bool more = true; more;) {
                const auto word = take_event_word(text, &more);
                if (auto r = take_event(c, "event", word); !r) return r;
              }
              return {};
            }));
  option.adds_up = true;
  return of_perf_events(std::move(option));
}

std::vector<Option> event_ratio(Setting by_period) {
  auto set = [=](Config& c, std::string_view option, std::string_view first,
                 std::string_view second) -> Result<void> {
    c.set(by_period, 1);
    if (first == second)
      return usage(fmt::format("--{}: '{}' is not two events", option, first),
                   "--ratio cycles/instructions");
    if (auto r = take_event(c, option, first); !r) return r;
    return take_event(c, option, second);
  };
  auto ratio = same_everywhere(value(
      0, "ratio", "EVENT/EVENT",
      "functions, or with --svg a flame graph, with the ratio of two events: cpu-clock/page-faults",
      [=](Config& c, std::string_view text) -> Result<void> {
        auto slash = text.find('/');
        // An event of a PMU has two slashes: the first one's, unless a name is before the first.
        const auto names = perf_event_names();
        const auto first = text.substr(0, std::min(text.find_first_of("/:"), text.size()));
        if (slash != text.npos && std::ranges::count(text, '/') > 1 &&
            std::ranges::find(names, first) == names.end())
          slash = text.find('/', text.find('/', slash + 1) + 1);
        if (slash == text.npos)
          return usage(fmt::format("--ratio: '{}' is not two events", text),
                       "--ratio cycles/instructions");
        return set(c, "ratio", text.substr(0, slash), text.substr(slash + 1));
      }));
  auto cpi = same_everywhere(
      flag(0, "cpi", "cycles per instruction: the same as --ratio cycles/instructions"));
  cpi.apply = [=](Config& c, std::string_view) { return set(c, "cpi", "cycles", "instructions"); };
  return {std::move(ratio), std::move(cpi)};
}

Result<void> check_sampled_event(const Config& c) {
  auto names = c.sampling.events;
  if (names.empty()) names.emplace_back("cpu-clock");
  for (auto& name : names) {
    auto event = perf_event_word(name);
    if (!event) return event.error();
    if (auto least = least_period(*event); c.sampling.period && c.sampling.period < least)
      return usage(fmt::format("--period: '{}' is not a number from {} to {}", c.sampling.period,
                               least, kMostPeriod),
                   "a shorter period can keep a CPU in the interrupts of the event");
  }
  return {};
}

Result<void> look_up_sampled_event(Config& c) {
  for (auto& name : c.sampling.events) {
    auto event = perf_event(name);
    if (!event) return event.error();
    int precise = 0;
    if (auto why = perf_event_refusal(name, &precise); !why.empty())
      return Error{fmt::format("cannot sample {}", name), why,
                   "software events are everywhere: cpu-clock, page-faults, context-switches, "
                   "cpu-migrations",
                   kUnsupported};
    if (auto& pmu = event->of_pmu;
        pmu && c.places.cpu && !pmu->counts_on(static_cast<int>(*c.places.cpu)))
      return Error{fmt::format("cannot sample {}", name),
                   fmt::format("the PMU {} does not count on CPU {}", pmu->pmu, *c.places.cpu),
                   {},
                   kUnsupported};
    if (precise < event->precise || (event->most_precise && !precise))
      c.notes.push_back(fmt::format("{}: samples have precision {} of 3: this machine has no more",
                                    name, precise));
  }
  return {};
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
