// The configuration of `coretap serve`: which tools run, and how much of them is shown.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/result.hpp"
#include "metrics/exporter.hpp"

namespace coretap::serve {

/// Where a tool's events go, as JSON lines.
struct EventFile {
  std::string file;               ///< empty: they are only pushed
  bool otlp = false;              ///< they are pushed
  std::string max_bytes = "50M";  ///< as --rotate takes it
  std::uint64_t keep = 3;         ///< files before it
  std::uint64_t per_second = 0;   ///< events that are written; 0: all

  bool operator==(const EventFile&) const = default;
};

/// A tool whose metrics are served.
struct Entry {
  std::string run;   ///< its command line, without "coretap"
  std::string name;  ///< label "tool"; by default the tool's
  bool named = false;
  std::vector<std::string> labels;
  std::uint64_t max_series = 0;  ///< lines of its own metrics; 0: its part of what there can be
  std::optional<std::uint64_t>
      max_rate;  ///< events a second; 0: any number; none: by the tool's kind
  std::optional<EventFile> events;
  std::string where;  ///< "exporter.toml:12", for errors

  bool profiles = false;  ///< it has stacks
  /// Of `run`, with what `events` adds.
  std::vector<std::string> arguments = {};  ///< the first is the tool

  /// Wherever it is in a file.
  bool operator==(const Entry& other) const;
  metrics::ExportOptions export_options() const;
};

/// What is pushed, and where to.
struct Otlp {
  std::string endpoint;      ///< as parse_endpoint() takes it
  std::uint64_t every = 60;  ///< seconds
  std::vector<std::pair<std::string, std::string>> headers;

  bool operator==(const Otlp&) const = default;
};

struct ServeConfig {
  std::string listen = "127.0.0.1:9961";  ///< or "unix:PATH"
  std::uint64_t max_series = 5000;
  std::optional<Otlp> otlp;  ///< none: nothing is pushed
  std::vector<Entry> entries;
};

/// Reads TOML; errors have the file's name, line and column.
Result<ServeConfig> parse_config(std::string_view text, const std::string& file);

/// Names, tools, command lines, labels and limits, as far as they can be judged without running.
Result<void> check(ServeConfig& config);

/// A command line in words as a shell divides it: blanks, quotes and backslashes.
Result<std::vector<std::string>> words_of(std::string_view line);

}  // namespace coretap::serve
