// walltime --diff: this run beside a recorded one.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coretap/report_kind.hpp"
#include "stacks/recorded_stacks.hpp"
#include "stacks/stack_comparison.hpp"
#include "stacks/stack_word.hpp"
#include "tools/cpu/walltime/accounts.hpp"

namespace coretap {

/// The time of owners in a part of the run.
struct WallSlice {
  struct Owner {
    task_id who = {};
    WallCells cells, details;

    void add(const task_id& is, const WallCells& more, const WallCells& finer);
  };
  std::map<std::uint64_t, Owner> owners;
  std::uint64_t lasted_ns = 0, thread_ns = 0;

  void add(const WallOwner& owner);
  void add(const WallSlice& more);
};

/// The parts of a run of unknown length: all are about as long.
class WallSlices {
 public:
  void begin(std::uint64_t now_ns) { from_ns_ = now_ns; }
  /// At `least_ns` or more since the last cut.
  bool due(std::uint64_t now_ns) const { return now_ns - from_ns_ >= length_ns_; }
  void add(const WallOwner& owner) { current_.add(owner); }
  void cut(std::uint64_t now_ns);
  /// A short one at the end belongs to the one before.
  std::vector<WallSlice> take();

 private:
  static constexpr std::uint64_t kFirstLength = 500'000'000;

  std::vector<WallSlice> slices_;
  WallSlice current_;
  std::uint64_t from_ns_ = 0, length_ns_ = kFirstLength;
};

class WallComparison {
 public:
  Result<void> read(const std::string& path);
  /// Has the recorded run time in which there was nothing to do?
  bool has_work() const { return has_work_; }

  /// `lengths`: of the parts of this run; all times are in ns.
  void begin(const std::vector<WallSlice>& slices, std::uint64_t thread_ns, bool work);
  /// The path of this run; its first word is the task, and the last one the state.
  void add(const std::vector<StackWord>& path, std::uint64_t ns);
  /// When all of the run was added: adds the recorded one.
  void add_recorded();
  void add_slice(std::size_t slice, const std::vector<StackWord>& path, std::uint64_t ns);

  /// The table, or its JSON.
  void show(Session& s) const;
  std::string svg(PictureTitle title) const;
  static std::vector<JsonKind> json();
  static void manual(Manual& m);

 private:
  std::vector<std::string> names_of(const RecordedStacks::Stack& stack) const;
  StackComparison::Stack stack(std::vector<std::string> path) const;
  std::string source() const;

  std::string file_;
  RecordedStacks recorded_;
  std::optional<StackComparison> comparison_;
  std::map<std::vector<std::string>, std::uint64_t> now_;  ///< ns, until recorded stacks are added
  std::set<std::string> kernel_;                           ///< functions
  std::vector<double> slice_thread_ns_;
  double thread_ns_ = 0;
  bool has_work_ = false, work_ = false;
};

}  // namespace coretap
