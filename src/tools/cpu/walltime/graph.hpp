// Wall time as a flame graph, a profile, and folded stacks: the states are frames.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "coretap/reports.hpp"
#include "stacks/stack_files.hpp"
#include "stacks/stack_names.hpp"
#include "tools/cpu/walltime/accounts.hpp"
#include "tools/cpu/walltime/compare.hpp"

namespace coretap {

class WallGraph {
 public:
  /// The index of a cell's state (wall::states()).
  using StateOf = std::function<std::size_t(const WallCell&)>;

  void configure(Session& s);
  bool wanted() const { return wanted_; }
  bool keeps_file() const { return files_.keeps_file(); }
  /// Reads the file of --diff.
  Result<void> ready(Session& s);
  Result<void> open(Session& s);
  /// When tracing begins.
  void begin(std::uint64_t now_ns) { slices_.begin(now_ns); }
  bool compares() const { return diff_; }
  /// The time of the run's parts, by which a comparison knows the noise: is one over?
  bool part_is_over(std::uint64_t now_ns) const { return diff_ && slices_.due(now_ns); }
  void end_part(std::uint64_t now_ns) {
    if (diff_) slices_.cut(now_ns);
  }
  /// The time of an owner since the last report. `title`: frames below all others, if not empty.
  void add(const WallOwner& owner, const std::string& title);
  /// Draws the owners that have ended, or all of them.
  void draw(Session& s, StackNames& names, const StateOf& state_of, bool all);
  /// After all of them: folded stacks, or what has changed.
  void fold(Session& s);
  Result<void> finish(Session& s) { return files_.finish(s, "microseconds"); }

 private:
  struct Owner {
    task_id who = {};
    std::string title;
    WallCells cells, details;
    bool ended = false;

    std::uint64_t samples() const;
    std::string name() const { return title + ';' + who.comm; }
  };
  /// Owners of one name that are drawn together.
  struct Group {
    std::uint64_t samples = 0;  ///< of those that are still to be drawn
    bool sampled = false;
    wall_sum rest = {};  ///< time on a CPU of those without samples
  };
  /// A piece of time with one stack and state.
  struct Piece {
    WallCell stacks;
    std::size_t state;
    std::string_view leaf;
    bool is_short;  ///< its stacks are not known, as it was short
    wall_sum sum;
  };

  void draw(const Owner& owner, const StateOf& state_of);
  void draw_cpu(const Owner& owner, const wall_sum& sum);
  void draw_queue(const Owner& owner, std::size_t state, const wall_sum& sum);
  void draw_all(const StateOf& state_of, bool all);
  void put(const Owner& owner, const Piece& piece);

  std::map<std::uint64_t, Owner> owners_;
  std::map<std::string, Group> groups_;
  std::optional<StackLayout> layout_;
  std::map<std::string, std::uint64_t> folded_;
  StackFiles files_;
  Session* session_ = nullptr;  ///< while it draws
  StackNames* names_ = nullptr;
  WallSlices slices_;                 ///< with --diff
  WallComparison comparison_;         ///< with --diff
  std::optional<std::size_t> slice_;  ///< that it draws; none: the whole run
  std::uint64_t thread_ns_ = 0;
  bool diff_ = false;
  bool wanted_ = false, by_state_ = false, work_ = false, kernel_ = true, by_thread_ = false;
  std::uint64_t drawn_ns_ = 0, left_out_ns_ = 0;
};

}  // namespace coretap
