// The accounts of threads (bpf/cpu/walltime.h), added up by owner: where their time went since the
// last report.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "cpu/walltime.h"

namespace coretap {

/// A state (enum wall_state), or what a wait is known by, with the keys of its stacks.
struct WallCell {
  std::uint64_t witness = 0, stack = 0, user = 0;
  auto operator<=>(const WallCell&) const = default;  // NOLINT(modernize-use-nullptr)
};
using WallCells = std::map<WallCell, wall_sum>;

void add(wall_sum& to, const wall_sum& more);

/// The time of one owner, a process or a thread, in one report.
struct WallOwner {
  std::uint64_t owner = 0;
  task_id who = {};
  std::uint64_t threads = 0, time_ns = 0;
  WallCells cells;
  WallCells details;   ///< of cells of the CPU and of waits for it: samples, and parts with stacks
  bool ended = false;  ///< its rows are needed no more
};

class Accounts {
 public:
  void by_thread(bool yes) { by_thread_ = yes; }

  /// An account from an iteration over all threads, or that of a thread that has ended.
  void take(const walltime_account& account);
  void take_row(const walltime_row& row, const wall_sum& sum);

  /// The time since the last report. `closed`: nothing has changed while accounts and rows were
  /// read. Otherwise rows may have more than the accounts: it belongs to the next report.
  std::vector<WallOwner> report(bool closed);

 private:
  struct Thread {
    walltime_account account;
    std::uint64_t seen;  ///< number of the report
  };
  struct Owner {
    task_id who = {};
    std::map<std::uint64_t, Thread> threads;
    WallCells ended, rows, reported;
    WallCells details, reported_details;
    std::uint64_t ended_ns = 0, reported_ns = 0;
    std::uint64_t ended_threads = 0;  ///< since the last report
  };

  static void fold(Owner& owner, const walltime_account& account);
  static WallCells changes(Owner& owner, const WallCells& now);

  std::map<std::uint64_t, Owner> owners_;
  std::uint64_t reports_ = 1;
  bool by_thread_ = false;
};

}  // namespace coretap
