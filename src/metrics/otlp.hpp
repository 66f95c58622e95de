// Metrics and events in OTLP, the protobuf messages of OpenTelemetry: converted from the page for
// Prometheus and from event lines, so that both formats agree.
//
// Names: each name is the page's without its unit and "_total"; the unit is separate. An engine
// that converts OTLP names to Prometheus' style thus gets the page's names.
//
// Attributes of metrics have the labels' names unchanged. With names of OpenTelemetry's
// conventions (process.pid) or a prefix, an engine would derive other labels (process_pid) than
// from a scrape, and no dashboard or rule would work for both. Attributes of events do not become
// labels: they use the conventions' names, as other sources of logs do, and "coretap." as a prefix
// for all others.
//
// There is no scope: some engines derive labels from it that a scrape does not have.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/names.hpp"

namespace coretap::metrics {

/// The source of the metrics and events.
struct OtlpResource {
  std::string version;
  std::string host;
};

struct OtlpName {
  std::string name;       ///< "coretap.filetop.read"
  std::string_view unit;  ///< "By"
};
/// The name for a family of the page: "coretap_filetop_read_bytes_total".
OtlpName otlp_name(std::string_view family, Type type);

/// An ExportMetricsServiceRequest.
class OtlpMetrics {
 public:
  explicit OtlpMetrics(OtlpResource resource) : resource_(std::move(resource)) {}

  /// Adds a page with the time `now_ns`. A tool's counters start at its start time in the page;
  /// others at `since_ns` (both in ns since 1970).
  void add(std::string_view page, std::uint64_t now_ns, std::uint64_t since_ns);

  std::uint64_t points() const { return points_; }
  /// Omitted lines that are not samples, and omitted incomplete histograms.
  std::uint64_t malformed() const { return malformed_; }
  std::string finish() const;

 private:
  OtlpResource resource_;
  std::string metrics_;
  std::uint64_t points_ = 0, malformed_ = 0;
};

/// An ExportLogsServiceRequest.
class OtlpLogs {
 public:
  explicit OtlpLogs(OtlpResource resource) : resource_(std::move(resource)) {}

  /// Adds an event, a line of JSON. `entry`: name of the tool's entry, if any. False: it is not an
  /// event and is omitted.
  ///
  /// The body is the line: log views of engines show the body, some reject records without one, and
  /// queries written for lines from files work.
  bool add(std::string_view line, std::string_view entry, std::uint64_t now_ns);

  std::uint64_t records() const { return records_; }
  std::size_t bytes() const { return text_.size(); }
  /// Returns the added records and clears them.
  std::string take();

  /// Longer lines are omitted.
  static constexpr std::size_t kLongestLine = 64 << 10;

 private:
  OtlpResource resource_;
  std::string text_;
  std::uint64_t records_ = 0;
};

/// Number of points or records that an answer reports as rejected although the request was
/// accepted.
std::uint64_t otlp_rejected(std::string_view response);

}  // namespace coretap::metrics
