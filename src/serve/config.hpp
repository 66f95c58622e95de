// The configuration of `coretap serve`: the tools that run, and limits of their output.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/result.hpp"
#include "metrics/exporter.hpp"
#include "record/store.hpp"
#include "run/triggers.hpp"

namespace coretap::serve {

/// The destination of a tool's events, as JSON lines.
struct EventFile {
  std::string file;               ///< empty: only pushed
  bool otlp = false;              ///< push them
  std::string max_bytes = "50M";  ///< in the syntax of --rotate
  std::uint64_t keep = 3;         ///< number of older files
  std::uint64_t per_second = 0;   ///< limit of events that are written; 0: all

  bool operator==(const EventFile&) const = default;
};

/// A tool whose metrics are served.
struct Entry {
  std::string run;   ///< its command line, without "coretap"
  std::string name;  ///< label "tool"; default: the tool's name
  bool named = false;
  std::vector<std::string> labels;
  std::uint64_t max_series = 0;  ///< lines of the tool's metrics; 0: its share of the total
  std::optional<std::uint64_t>
      max_rate;  ///< events per second; 0: no limit; none: by the tool's kind
  std::optional<EventFile> events;
  bool hindsight = false;  ///< recorded, too
  std::string where;       ///< "exporter.toml:12", for errors

  bool profiles = false;  ///< the tool has stacks
  /// `run` as words, with the options that `events` adds.
  std::vector<std::string> arguments = {};  ///< the first is the tool

  /// Ignores `where`.
  bool operator==(const Entry& other) const;
  metrics::ExportOptions export_options() const;
};

/// The data that is pushed, and the destination.
struct Otlp {
  std::string endpoint;      ///< in the syntax of parse_endpoint()
  std::uint64_t every = 60;  ///< seconds
  std::vector<std::pair<std::string, std::string>> headers;

  bool operator==(const Otlp&) const = default;
};

/// Recordings of the last minutes, which triggers and requests save.
struct Hindsight {
  struct On {
    std::string text, where;
    bool operator==(const On& other) const { return text == other.text; }
  };
  record::StoreOptions store;
  std::vector<On> on;
  std::string token_file;
  std::string where;

  // Of `on`:
  std::vector<TriggerRule> triggers = {};
  std::vector<metrics::Threshold> thresholds = {};
  std::string token = {};  ///< empty: there is none

  /// Of what the file says.
  bool operator==(const Hindsight& other) const;
};

struct ServeConfig {
  std::string listen = "127.0.0.1:9961";  ///< or "unix:PATH"
  std::uint64_t max_series = 5000;
  std::optional<Otlp> otlp;  ///< none: nothing is pushed
  std::optional<Hindsight> hindsight;
  std::vector<Entry> entries;
};

/// Reads TOML; errors include the file's name, line and column.
Result<ServeConfig> parse_config(std::string_view text, const std::string& file);

/// Checks names, tools, command lines, labels and limits, as far as possible without running.
Result<void> check(ServeConfig& config);

}  // namespace coretap::serve
