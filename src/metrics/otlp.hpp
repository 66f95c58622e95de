// Metrics and events in OTLP, the protobuf messages of OpenTelemetry: made of the page that
// Prometheus reads and of the lines that event files have, so that both ways say the same.
//
// Names: an engine that gives OTLP metrics Prometheus' names ends with those of the page, as each
// one is the page's without its unit and "_total", and has the unit apart.
//
// Attributes of metrics have the labels' names as they are. With names of OpenTelemetry's
// conventions (process.pid) or a prefix, an engine would make other labels of them (process_pid)
// than a scrape does, and no dashboard or rule would fit both. Attributes of events become no
// labels: there the conventions' names count, which other sources of logs have too, and the rest
// begins with "coretap.".
//
// There is no scope: some engines make labels of it, which a scrape has not.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/names.hpp"

namespace coretap::metrics {

/// Whose metrics and events they are.
struct OtlpResource {
  std::string version;
  std::string host;
};

struct OtlpName {
  std::string name;       ///< "coretap.filetop.read"
  std::string_view unit;  ///< "By"
};
/// Of a family of the page: "coretap_filetop_read_bytes_total".
OtlpName otlp_name(std::string_view family, Type type);

/// An ExportMetricsServiceRequest.
class OtlpMetrics {
 public:
  explicit OtlpMetrics(OtlpResource resource) : resource_(std::move(resource)) {}

  /// All of a page as of now. A tool's counters began when it was started, by the page itself;
  /// others when `since_ns` says (ns since 1970).
  void add(std::string_view page, std::uint64_t now_ns, std::uint64_t since_ns);

  std::uint64_t points() const { return points_; }
  /// Lines that are no samples, and histograms that are not whole: they are left out.
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

  /// An event, as a line of JSON. `entry`: the name of the tool's entry, where it has one. False:
  /// it is none, and left out.
  ///
  /// The body is the line: log views of engines show the body, some refuse records without one, and
  /// queries over lines from files fit.
  bool add(std::string_view line, std::string_view entry, std::uint64_t now_ns);

  std::uint64_t records() const { return records_; }
  std::size_t bytes() const { return text_.size(); }
  /// What was added; it is empty again then.
  std::string take();

  /// Longer lines are left out.
  static constexpr std::size_t kLongestLine = 64 << 10;

 private:
  OtlpResource resource_;
  std::string text_;
  std::uint64_t records_ = 0;
};

/// How many points or records an answer says were refused though the request was taken.
std::uint64_t otlp_rejected(std::string_view response);

}  // namespace coretap::metrics
