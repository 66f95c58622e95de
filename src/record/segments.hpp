// A run that is recorded into segments, of which only the last ones are kept: what the process that
// writes them and the one that removes them (record/store.hpp) share.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "record/format.hpp"

namespace coretap::record {

/// A condition on what a tool measures was met.
struct Alarm {
  std::atomic<std::uint64_t> raised;  ///< how often
  std::atomic<double> value;          ///< what was measured
};
inline constexpr std::size_t kMostAlarms = 32;

/// The state of one recorded tool. The tool's process writes it, except `wanted` and `wakes`.
struct ToolState {
  std::atomic<std::uint64_t> segment;     ///< the current one, from 1; 0: there was none
  std::atomic<std::uint64_t> closed;      ///< the last one that is complete
  std::atomic<std::uint64_t> bytes;       ///< written
  std::atomic<std::uint64_t> events;      ///< all events that hooks saw
  std::atomic<std::uint64_t> shown;       ///< those that passed the filters
  std::atomic<std::uint64_t> unrecorded;  ///< records that are in no segment, for lack of space
  std::atomic<std::uint64_t> wanted;      ///< raised: the segment is to end now
  std::atomic<bool> wakes;                ///< `shown` is waited for
  Alarm alarms[kMostAlarms];
};

inline constexpr std::size_t kMostTools = 64;

/// In memory that the processes share.
struct Shared {
  std::atomic<std::int64_t> left;  ///< bytes that may still be written
  std::atomic<bool> full;          ///< the file system has too little space
  std::int64_t reserve;            ///< below it the store makes space
  ToolState tools[kMostTools];
};

std::string segment_name(std::string_view tool, std::uint64_t number);

/// The segments of one tool.
class Segments : public Room {
 public:
  struct Limits {
    std::uint64_t ns, bytes;
  };
  /// `wake`: an eventfd; its reader is to look at the shared state.
  Segments(Shared& shared, ToolState& state, int directory, std::string name, int wake,
           Limits limits)
      : shared_(shared),
        state_(state),
        directory_(directory),
        name_(std::move(name)),
        wake_(wake),
        limits_(limits) {}

  Result<void> begin_next(Writer& to, std::uint64_t now_ns);
  bool take(std::uint64_t bytes) override;
  void give_back(std::uint64_t bytes) override { shared_.left += static_cast<std::int64_t>(bytes); }
  bool due(const Writer& to, std::uint64_t now_ns) const;
  bool too_large(const Writer& to) const { return to.bytes() >= limits_.bytes; }
  /// Of the current one.
  std::uint64_t number() const { return state_.segment; }
  std::uint64_t run() const { return run_; }
  ToolState& state() const { return state_; }
  void wake() const;
  void wake_if_asked() const {
    if (state_.wakes) wake();
  }
  /// Segments of a tool whose samples are large and rare are longer.
  void lengthen(std::uint64_t least_ns) { limits_.ns = std::max(limits_.ns, least_ns); }

 private:
  Shared& shared_;
  ToolState& state_;
  const int directory_;
  const std::string name_;
  const int wake_;
  Limits limits_;
  std::uint64_t run_ = 0, began_ns_ = 0, followed_ = 0;
};

}  // namespace coretap::record
