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

namespace coretap {

class WallGraph {
 public:
  /// The index of a cell's state (wall::states()).
  using StateOf = std::function<std::size_t(const WallCell&)>;

  void configure(Session& s);
  bool wanted() const { return wanted_; }
  bool keeps_file() const { return files_.keeps_file(); }
  Result<void> open(Session& s);
  /// The time of an owner since the last report. `title`: frames below all others, if not empty.
  void add(const WallOwner& owner, const std::string& title);
  /// Draws the owners that have ended, or all of them.
  void draw(Session& s, StackNames& names, const StateOf& state_of, bool all);
  /// After all of them.
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
  void put(const Owner& owner, const Piece& piece);

  std::map<std::uint64_t, Owner> owners_;
  std::map<std::string, Group> groups_;
  std::optional<StackLayout> layout_;
  std::map<std::string, std::uint64_t> folded_;
  StackFiles files_;
  Session* session_ = nullptr;  ///< while it draws
  StackNames* names_ = nullptr;
  bool wanted_ = false, by_state_ = false, work_ = false, kernel_ = true, by_thread_ = false;
  std::uint64_t drawn_ns_ = 0, left_out_ns_ = 0;
};

}  // namespace coretap
