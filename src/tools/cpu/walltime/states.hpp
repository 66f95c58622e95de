// The states of threads, the columns of tables that they belong to, and the times of a row.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "cpu/walltime.h"

namespace coretap::wall {

/// A column of tables: the states that belong together.
enum Column { kCpu, kQueue, kLimit, kDisk, kMemory, kLock, kPeer, kWork, kOther, kColumns };
inline constexpr std::string_view kTitles[kColumns] = {"CPU",  "QUEUE", "LIMIT", "DISK", "MEMORY",
                                                       "LOCK", "PEER",  "WORK",  "OTHER"};

struct State {
  std::string name;  ///< "wait.disk_read"
  std::string key;   ///< "wait_disk_read"
  Column column;
  std::string doc;
};

/// Those without a reason come first, by enum wall_state.
const std::vector<State>& states();

/// The keys of --by: what makes a row.
struct By {
  bool process = true, thread = false, comm = false, uid = false;
  bool cgroup = false, container = false, unit = false;

  By() = default;
  explicit By(const std::vector<std::string>& keys);
  /// Of which there may be other keys than `keys`; empty: none.
  static std::string_view unknown(const std::vector<std::string>& keys);

  /// Do threads of a process belong to different rows?
  bool threads() const { return thread || cgroup || container || unit; }
  bool pid() const { return process || thread; }
  bool named() const { return pid() || comm; }
  /// Is this name that of all of the row's threads?
  bool knows(CgroupName which) const {
    return pid() || cgroup || (which == CgroupName::container && container) ||
           (which == CgroupName::unit && unit);
  }
  /// Is it a column of text?
  bool shows(CgroupName which) const {
    return which == CgroupName::path ? cgroup : which == CgroupName::container ? container : unit;
  }
};

struct Row {
  task_id who = {};
  std::uint64_t threads = 0, time_ns = 0;
  std::vector<wall_sum> sums = std::vector<wall_sum>(states().size());

  std::array<std::uint64_t, kColumns> columns() const;
  std::uint64_t states_ns() const;
  /// Without the time in which it had nothing to do.
  std::uint64_t active_ns() const;
  /// The longest stay in a state other than on a CPU.
  std::size_t longest() const;
};

/// Shares in tenths of a percent that add up to 1000: those with the largest rests are rounded up.
std::array<std::uint64_t, kColumns> shares(const Row& row);

}  // namespace coretap::wall
