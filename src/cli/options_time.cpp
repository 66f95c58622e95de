// Options for intervals of reports, format of times, and duration of tracing.
#include <fmt/format.h>

#include "coretap/option_parts.hpp"

namespace coretap::shared {

namespace {

Positional time_argument(std::string_view metavar, std::string doc, std::string_view option,
                         double Config::*member) {
  return {.metavar = metavar,
          .doc = std::move(doc),
          .apply = [=](Config& c, std::string_view text) -> Result<void> {
            auto s = take_seconds(metavar, text);
            if (!s) return s.error();
            c.*member = *s;
            return {};
          },
          .option = option};
}

}  // namespace

Option timestamp(char letter) {
  return same_everywhere(flag(letter, "timestamp", "print the time of each line or report"));
}
Option milliseconds(std::string_view doc) {
  return same_everywhere(flag('m', "milliseconds", doc));
}
Option microseconds() {
  return same_everywhere(flag('u', "microseconds", "histograms in microseconds"));
}
Option nanoseconds() { return same_everywhere(flag('N', "nanoseconds", "times in nanoseconds")); }
Option interval() { return seconds('i', "interval", "time between reports", &Config::interval); }
Option duration(char letter) {
  return seconds(letter, "duration", "exit after this time", &Config::duration);
}

std::vector<Positional> interval_count(double otherwise) {
  auto without = otherwise > 0 ? fmt::format("{:g}", otherwise) : "one report at the end";
  auto interval = time_argument(
      "INTERVAL", fmt::format("seconds between reports (or 100ms, 2m, 1h); without it {}", without),
      "interval", &Config::interval);
  if (otherwise > 0) interval.otherwise = fmt::format("{:g}", otherwise);
  Positional count = {.metavar = "COUNT",
                      .doc = "number of reports; without it until Ctrl-C",
                      .apply = [](Config& c, std::string_view text) -> Result<void> {
                        auto n = take_number("COUNT", text, 1, UINT64_MAX, parse_unsigned);
                        if (!n) return n.error();
                        c.count = *n;
                        return {};
                      }};
  return {interval, count};
}

Positional duration_argument() {
  return time_argument("DURATION", "seconds to trace (or 100ms, 2m, 1h); without it until Ctrl-C",
                       "duration", &Config::duration);
}

}  // namespace coretap::shared
