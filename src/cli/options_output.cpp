// Options for the contents, destination and order of output.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/colour.hpp"
#include "base/rate_limit.hpp"
#include "coretap/option_parts.hpp"

namespace coretap::shared {

Option output(char letter) {
  return same_everywhere(free_text(
      letter, "output", "FILE", "write to FILE (replaced if it exists) instead of standard output",
      Complete::file, "a file"));
}

namespace {

Result<void> take_rotation(Config& c, std::string_view text) {
  constexpr std::uint64_t kLeast = 1 << 10, kMost = 1ULL << 40, kMostFiles = 99;
  auto rest = text;
  auto bytes = parse_size(take_until(rest, ','));
  if (!bytes || *bytes < kLeast || *bytes > kMost)
    return usage(fmt::format("--rotate: '{}' does not start with a size from 1K to 1024G", text),
                 "give a size and, optionally, how many old files to keep: --rotate 10M,5");
  c.files.rotate_bytes = *bytes;
  if (text.find(',') == text.npos) return {};
  auto files = parse_unsigned(rest);
  if (!files || *files < 1 || *files > kMostFiles)
    return usage(
        fmt::format("--rotate: '{}' is not a number of old files from 1 to {}", rest, kMostFiles),
        "give a size and how many old files to keep: --rotate 10M,5");
  c.files.rotate_keep = *files;
  return {};
}

}  // namespace

std::vector<Option> output_files() {
  return belonging_to(
      "output",
      {same_everywhere(value(0, "rotate", "SIZE[,KEEP]",
                             "rename FILE to FILE.1 before it grows beyond SIZE, and start a new "
                             "one; KEEP old files are kept (default: 3)",
                             take_rotation)),
       same_everywhere(flag(0, "append", "append to FILE instead of replacing it"))});
}

Option record() {
  return same_everywhere(value(
      0, "record", "FILE",
      "also record the run into FILE, which coretap show prints again, in any form of output",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--record needs a file");
        c.files.record = text;
        return {};
      },
      Complete::file));
}

Option perfetto() {
  return same_everywhere(value(
      0, "perfetto", "FILE",
      "also write the events as a trace for Perfetto (ui.perfetto.dev), on the tracks of threads",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty() || text == "-")
          return usage("--perfetto: standard output is for one thing only", "name a file");
        c.files.perfetto = text;
        return {};
      },
      Complete::file));
}

Option max_rate() {
  return limit(0, "max-rate", "N",
               "show at most N events per second; others are counted as limited, not as lost",
               RateLimit::kMost, [](Config& c) { return &c.events.per_second; });
}

Option color() {
  auto number = [](ColourMode mode) { return static_cast<std::uint64_t>(mode); };
  return same_everywhere(
      choice(0, "color", "WHEN",
             "colours: auto (default), on terminals unless NO_COLOR is set; always; never",
             {{"auto", number(ColourMode::automatic), "on terminals, unless NO_COLOR is set"},
              {"always", number(ColourMode::always)},
              {"never", number(ColourMode::never)}},
             [](Config&, std::uint64_t mode) { set_colour_mode(static_cast<ColourMode>(mode)); })
          .also("colour"));
}

Option kernel_stack() {
  return same_everywhere(flag('K', "kernel-stack", "print the kernel stack of each event"));
}
Option extended() {
  return same_everywhere(flag('e', "extended", "print more columns").also("extended-fields"));
}
Option print_uid() { return same_everywhere(flag('U', "print-uid", "print the user id")); }

Option max_events(char letter) {
  return limit(letter, "max-events", "N", "end when N events have been shown", 1ULL << 40,
               [](Config& c) { return &c.events.most; });
}

Option max_keys(char letter) {
  return limit(letter, "max-keys", "N", "maximum distinct keys (default: scaled to the machine)",
               1 << 24, [](Config& c) { return &c.rows.max_keys; });
}

Option top(char letter) {
  return limit(letter, "top", "ROWS", "show only the first ROWS rows", 1 << 24,
               [](Config& c) { return &c.rows.top; });
}
Option sort(char letter) {
  return same_everywhere(value(
      letter, "sort", "KEY", "sort rows by KEY: the largest number first, text from A to Z",
      [](Config& c, std::string_view text) -> Result<void> {
        c.rows.sort = text;
        return {};
      },
      Complete::sort_key));
}

Option by() {
  auto o = same_everywhere(
      value(0, "by", "KEY,...", "add up rows by only these keys of the JSON output, such as comm",
            [](Config& c, std::string_view text) -> Result<void> {
              bool all = take_parts(text, [&](std::string_view key) {
                c.rows.by.emplace_back(key);
                return !key.empty();
              });
              if (!all || c.rows.by.empty())
                return usage(fmt::format("--by: '{}' is not a list of keys", text));
              return {};
            }));
  o.adds_up = true;
  return o;
}

Option percentiles(std::string_view doc) {
  return same_everywhere(
      value(0, "percentiles", "P,...", doc, [](Config& c, std::string_view text) -> Result<void> {
        c.rows.percentiles.clear();
        bool good = take_parts(text, [&](auto word) {
          double percent = 0;
          auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), percent);
          c.rows.percentiles.push_back(percent);
          return error == std::errc{} && end == word.data() + word.size() && percent >= 0 &&
                 percent <= 100;
        });
        if (!good)
          return usage(
              fmt::format("--percentiles: '{}' is not a list of numbers from 0 to 100", text),
              "separate them by commas: 50,99,99.9");
        std::sort(c.rows.percentiles.begin(), c.rows.percentiles.end());
        return {};
      }).also("pcts"));
}
Option overall() {
  return same_everywhere(flag(0, "overall", "percentiles of all values since tracing began"));
}

std::vector<Option> screen() {
  return {
      same_everywhere(flag('C', "noclear", "print reports one after another, not over each other")),
      top('r').also("maxrows,rows"), sort()};
}

Option on_screen() {
  return same_everywhere(
      flag(0, "screen", "redraw reports in place, each second without an interval; q: end"));
}

Option heatmap() {
  auto o = same_everywhere(value(
      0, "heatmap", "[FILE]",
      "print each histogram as a line, every second if no interval is given; with a FILE that "
      "ends in .svg, write an interactive heat map to it at the end instead (--heatmap=-: "
      "standard output)",
      [](Config& c, std::string_view text) -> Result<void> {
        c.files.heatmap = text;
        return {};
      },
      Complete::file));
  o.optional_suffix = ".svg";
  return o;
}

Option output_format() {
  return same_everywhere(
      choice(0, "output-format", "FORMAT", "text, json (as --json does) or csv (as --csv does)",
             {{"text"}, {"json", 1}, {"csv", 2}}, [](Config& c, std::uint64_t n) {
               if (n) c.give(n == 1 ? "json" : "csv", {});
             }));
}
Option csv(char letter) {
  return same_everywhere(flag(letter, "csv", "comma-separated values with a header line"));
}
Option wide(char letter) {
  return same_everywhere(flag(letter, "wide", "columns wide enough for any IPv6 address"));
}

}  // namespace coretap::shared
