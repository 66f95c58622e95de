// The recordings of tools that `coretap serve` keeps (the table [hindsight]): the store of their
// segments, the triggers, and which tool has which place in the store.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.hpp"
#include "metrics/page.hpp"
#include "record/store.hpp"
#include "run/triggers.hpp"
#include "serve/config.hpp"

namespace coretap::serve {

class FlightRecorder {
 public:
  using Say = std::function<void(std::string_view)>;

  FlightRecorder(Loop& loop, const Hindsight& config, Say say);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// With places for these tools. The loop must be open, SIGUSR1 blocked; `dumped` is called after
  /// dumps were made or refused.
  Result<void> open(const std::vector<Entry>& entries, std::function<void()> dumped);

  /// A place for the recordings of a tool that starts now, after ended() the one that it had
  /// before; none: there is no further place.
  std::optional<std::size_t> begin(const Entry& entry);
  /// Its process has ended. `why` for people; empty: it was to end.
  void ended(std::size_t place, std::string why);

  /// For the process of a tool, which has no other part of this object.
  std::pair<Fd*, Fd*> descriptors() { return store_.descriptors(); }
  std::unique_ptr<record::Segments> segments(std::size_t place) { return store_.segments(place); }
  record::ToolState& state(std::size_t place) { return store_.state(place); }

  /// For that process: the thresholds that it judges, and the way to report that one was met.
  void judge_in(metrics::ExportOptions& options, record::Segments& segments) const;

  struct Answer {
    bool good;
    std::string text;  ///< JSON with the path of the dump, or why there is none
  };
  /// `of_user`: at_most does not limit it. `last`: seconds before it that are wanted; 0: all.
  Answer dump_on_request(bool of_user, double last);
  void add_metrics(metrics::Page& page);
  /// After all tools have ended.
  void end() { store_.end(); }

 private:
  struct Place {
    std::string entry, tool;
    bool used = false;
    std::vector<std::uint64_t> raised = {};  ///< how often each threshold was met, as seen before
  };

  std::size_t add(const Entry& entry);
  void dump(const record::Trigger& why);
  void look_at_alarms();
  std::uint64_t shown_by(const std::string& tool);

  Loop& loop_;
  const Hindsight config_;
  record::Store store_;
  Triggers triggers_;
  std::vector<Place> places_;  ///< as the store numbers them
  Say say_;
  std::function<void()> dumped_;
};

}  // namespace coretap::serve
