// Files that stack tools write at the end: a flame graph (--svg) and a profile (--pprof).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/report_kind.hpp"
#include "program/last_file.hpp"
#include "program/picture.hpp"
#include "stacks/flamegraph.hpp"
#include "stacks/pprof.hpp"
#include "stacks/stack_layout.hpp"

namespace coretap {

/// A profile of a tool's stacks.
class StackProfile {
 public:
  /// The values of each sample; readers show the last one first.
  struct Values {
    std::vector<PprofProfile::Type> types;
    std::uint64_t period = 0;  ///< of the last type, between two samples
  };
  explicit StackProfile(const Values& values) : period_(values.period), profile_(values.types) {}

  /// `path`: a task in it is a label, and not a frame.
  void add(std::vector<StackWord> path, const PprofProfile::Task& task,
           const std::vector<std::uint64_t>& values);
  /// Includes the options and losses; `forgotten`: events whose stacks are no longer known.
  std::string finish(const Session& s, std::uint64_t began_ns, std::uint64_t ended_ns,
                     std::uint64_t forgotten = 0, const std::vector<std::string>& notes = {});

 private:
  std::uint64_t period_;
  PprofProfile profile_;
};

/// A path with the name of an event as its outermost frame.
std::vector<StackWord> below(const std::string& event, std::vector<StackWord> path);

class StackFiles {
 public:
  using Values = StackProfile::Values;

  /// Fails if a file cannot be written. Does nothing if no file is requested.
  Result<void> open(Session& s, Values values);
  /// Must frames have their places for these files, or for annotated names?
  static bool need_places(const Config& config);
  bool wanted() const { return svg_wanted_ || pprof_wanted_; }
  bool keeps_file() const { return svg_.keeps_file() || pprof_.keeps_file(); }

  /// Starts a report, whose sums are since the start; drops those of earlier reports.
  /// `scale`: the flame graph's values per unit.
  void begin(std::uint64_t scale);
  /// The time until which stacks were added, if begin() was called at the start.
  void ends();
  /// `event`: the outermost frame of the flame graph; empty: none.
  void add(const std::vector<StackWord>& path, const PprofProfile::Task& task,
           std::uint64_t graph_value, const std::vector<std::uint64_t>& values,
           const std::string& event = {});
  /// A separate profile, for a request.
  StackProfile profile() const { return StackProfile(values_); }
  /// A line for the comments of the profile.
  void note(std::string words) { notes_.push_back(std::move(words)); }
  /// Makes the picture of --svg, instead of a flame graph of what was added.
  void draw_by(std::function<std::string(const PictureTitle&)> draw) { draw_ = std::move(draw); }
  /// `unit`: for the flame graph.
  Result<void> finish(Session& s, std::string_view unit);

  /// Adds the manual's text about the files.
  static void manual(Manual& m);

 private:
  bool svg_wanted_ = false, pprof_wanted_ = false;
  FlameGraph::ColourBy colour_by_ = FlameGraph::ColourBy::code;
  Values values_;
  std::optional<FlameGraph> graph_;
  std::optional<StackProfile> profile_;
  LastFile svg_, pprof_;
  std::vector<std::string> notes_;
  std::function<std::string(const PictureTitle&)> draw_;
  std::uint64_t ended_ns_ = 0;
};

}  // namespace coretap
