// Metrics of one running tool for `coretap serve`: its series, and a page on request.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coretap/fd.hpp"
#include "metrics/names.hpp"
#include "metrics/page.hpp"
#include "metrics/series.hpp"
#include "metrics/threshold.hpp"

namespace coretap {

struct Ledger;
struct Session;

namespace metrics {

struct ExportOptions {
  std::string name;    ///< label "tool" of common metrics
  bool named = false;  ///< series have a label "entry" with the name: a tool runs twice
  std::vector<std::string> labels;         ///< capped keys to use as labels
  std::size_t max_series = 500;            ///< lines of its page for its series
  std::uint64_t max_rate = 0;              ///< events per second above which it exits; 0: no limit
  std::vector<Threshold> thresholds = {};  ///< those that do not apply to the tool are passed over
  Judge::Over over = {};                   ///< a threshold is crossed
  bool starts_at_zero = true;  ///< new series are shown as 0 first, so that rates have a start
};

/// Exit status of a tool that exceeded max_rate.
inline constexpr int kTooMany = 75;

/// Requests and replies, over a stream socket.
struct Request {
  enum What : std::uint32_t {
    page,     ///< a page of metrics
    profile,  ///< a pprof profile from now on; empty reply if unsupported
  };
  static constexpr std::uint32_t kSinceStart = 0;

  std::uint32_t id;
  What what = page;
  std::uint32_t ms = kSinceStart;  ///< duration of the profile in ms
};
struct ReplyHead {
  std::uint32_t id, bytes;
};

class Exporter {
 public:
  /// `events`: descriptor for event lines, if they are to be pushed.
  Exporter(std::shared_ptr<const Plan> plan, ExportOptions options, Fd channel, Fd events);

  /// Adds a row of an aggregate since the last reading, or an event.
  void add(const Session& s, const void* record);
  /// For readings: replaces all previous rows by these.
  void set_reading(const Session& s, const std::vector<const void*>& rows);
  /// For MetricShape::totals: values since tracing began, or of a reading.
  void set_totals(const Session& s, const void* counters);
  const Plan& plan() const { return *plan_; }

  int channel() const { return channel_.get(); }
  /// Reads the next request; false: no complete one yet. Sets `open` to false if the peer closed.
  bool read_request(Request& request, bool& open);
  void reply(const Request& request, std::string_view text);

  bool pushes_events() const { return static_cast<bool>(events_); }
  /// True if there is room for one more event. Events without room are counted as limited.
  bool has_room();
  void add_event(std::string_view line);
  /// Sends as many events as the reader accepts without blocking.
  void send_events();
  /// Waits briefly for the reader to take the rest; -> number of events not taken.
  std::uint64_t finish_events();

  /// The whole page: series, the ledger and the tool's costs.
  std::string page(const Session& s, const Ledger& ledger);

  bool judges() const { return judge_.any(); }
  /// Judges thresholds. Call it each second, after a report.
  void judge();

  /// True if there were too many events for too long. Call it every kRateSeconds.
  bool too_many(const Ledger& ledger);
  static constexpr double kRateSeconds = 10;

 private:
  void read_labels(const Session& s, const void* record);
  /// Fills values_; -> number of events that they represent.
  std::uint64_t read_values(const Session& s, const void* record);
  void series_page(Page& page);
  void ledger_page(Page& page, const Ledger& ledger) const;
  void cost_page(Page& page, const Session& s) const;

  static constexpr std::size_t kMostWaiting = 256 << 10;  // bytes of buffered events

  std::shared_ptr<const Plan> plan_;
  ExportOptions options_;
  Fd channel_, events_;
  std::string waiting_;  ///< events that the reader has not taken yet
  SeriesTable series_;
  SeriesTable::Labels labels_;         // of the current record
  std::vector<std::uint64_t> values_;  // of the current record
  std::vector<std::uint64_t> totals_;
  Judge judge_;
  std::string partial_;  // bytes of an incomplete request
  std::uint64_t seen_ = 0, too_many_ = 0;
};

}  // namespace metrics
}  // namespace coretap
