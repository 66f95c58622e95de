// What one running tool gives to `coretap serve`: its series, and its page of metrics on request.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "metrics/names.hpp"
#include "metrics/page.hpp"
#include "metrics/series.hpp"

namespace coretap {

struct Ledger;
struct Session;

namespace metrics {

struct ExportOptions {
  std::string name;                 ///< label "tool" of what all tools have
  bool named = false;               ///< series have a label "entry" with it: a tool runs twice
  std::vector<std::string> labels;  ///< of capped keys
  std::size_t max_series = 500;     ///< lines of its page that are its own
  std::uint64_t max_rate = 0;       ///< events a second from which it ends; 0: none
  bool starts_at_zero = true;       ///< series are shown as 0 first, so that rates have a start
};

/// Exit status of a tool that had more events than max_rate.
inline constexpr int kTooMany = 75;

/// Requests and replies, over a stream socket.
struct Request {
  enum What : std::uint32_t {
    page,     ///< of metrics
    profile,  ///< in pprof's format, of the time from now on; the reply is empty if there is none
  };
  static constexpr std::uint32_t kSinceStart = 0;

  std::uint32_t id;
  What what = page;
  std::uint32_t ms = kSinceStart;  ///< how long a profile's time is
};
struct ReplyHead {
  std::uint32_t id, bytes;
};

class Exporter {
 public:
  /// `events`: takes events as lines, if they are to be pushed.
  Exporter(std::shared_ptr<const Plan> plan, ExportOptions options, Fd channel, Fd events);

  /// A row of an aggregate since the reading before, or an event.
  void add(const Session& s, const void* record);
  /// Readings: all rows that there are now, in place of those before.
  void set_reading(const Session& s, const std::vector<const void*>& rows);
  /// MetricShape::totals: since tracing began, or of a reading.
  void set_totals(const Session& s, const void* counters);
  const Plan& plan() const { return *plan_; }

  int channel() const { return channel_.get(); }
  /// The next request; none: there is no whole one yet. False in `open`: the other end is closed.
  bool read_request(Request& request, bool& open);
  void reply(const Request& request, std::string_view text);

  bool pushes_events() const { return static_cast<bool>(events_); }
  /// Is there room for one more event? One that finds none is limited.
  bool has_room();
  void add_event(std::string_view line);
  /// As many as the reader takes at once.
  void send_events();
  /// Gives the reader a moment for the rest; how many events it has not taken.
  std::uint64_t finish_events();

  /// All of it: series, the ledger and what it costs.
  std::string page(const Session& s, const Ledger& ledger);

  /// Has it had too many events for too long? To be asked each kRateSeconds.
  bool too_many(const Ledger& ledger);
  static constexpr double kRateSeconds = 10;

 private:
  void read_labels(const Session& s, const void* record);
  /// Into values_; how many events they are of.
  std::uint64_t read_values(const Session& s, const void* record);
  void series_page(Page& page);
  void ledger_page(Page& page, const Ledger& ledger) const;
  void cost_page(Page& page, const Session& s) const;

  static constexpr std::size_t kMostWaiting = 256 << 10;  // bytes of events

  std::shared_ptr<const Plan> plan_;
  ExportOptions options_;
  Fd channel_, events_;
  std::string waiting_;  ///< events that the reader has not taken yet
  SeriesTable series_;
  SeriesTable::Labels labels_;         // of the record at hand
  std::vector<std::uint64_t> values_;  // of it
  std::vector<std::uint64_t> totals_;
  std::string partial_;  // of a request
  std::uint64_t seen_ = 0, too_many_ = 0;
};

}  // namespace metrics
}  // namespace coretap
