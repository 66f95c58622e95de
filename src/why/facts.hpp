// All that the rules of `coretap why` may look at: the accounts of threads' time, and counters of
// the kernel. Facts are values: `--raw` prints them, `--from` reads them, and nothing in ranking
// asks the kernel.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap::why {

/// The time of a process in a part of the run, by state: the keys of walltime's JSON without "_ns".
struct Account {
  std::uint32_t pid = 0;
  std::string comm = {}, cgroup = {};
  std::uint64_t threads = 0, time_ns = 0;
  bool target = false;      ///< it is what `why` was asked about
  bool kernel = false;      ///< a thread of the kernel
  bool own = false;         ///< `why` itself, and the tool that it runs
  bool background = false;  ///< nice 19 or SCHED_IDLE: it is meant to wait for a CPU
  std::map<std::string, std::uint64_t, std::less<>> ns = {};  ///< only states with time

  std::uint64_t in(std::string_view state) const;
};

/// The tasks that `why` is about; everything empty: the machine.
struct Target {
  std::vector<std::uint32_t> pids = {};
  std::vector<std::string> comms = {};
  std::string cgroup = {};  ///< below the mount of version 2

  bool named() const { return !pids.empty() || !comms.empty() || !cgroup.empty(); }
  std::string options() const;          ///< "-p 1,2"
  Result<std::string> subject() const;  ///< in words; fails if there is no such process
  bool has(const Account& account) const;
};

struct Part {
  double seconds = 0;
  std::vector<Account> accounts = {};
};

/// "mysqld (pid 12)", and its part of a sum.
struct OfProcess {
  std::string name;
  std::uint64_t ns;
};

/// From this share on, a target's CPU time may be for its system calls.
inline constexpr double kLeastSystemShare = 0.3;

struct Facts {
  std::string target;   ///< options that select it in every tool ("-p 12"); empty: the machine
  std::string subject;  ///< in words: "process 12 (mysqld)", "this machine"
  double seconds = 0;
  unsigned cpus = 0;    ///< online
  bool certain = true;  ///< false: too many events were not seen
  std::vector<Part> parts = {};
  /// Growth during the run, except for gauges: names in counters.cpp.
  std::map<std::string, double, std::less<>> counters = {};
  std::map<std::string, std::string, std::less<>> texts = {};  ///< settings: "cpu.max"

  /// Sums over all parts for the processes that have any, the largest first.
  std::vector<OfProcess> by_process(const std::function<std::uint64_t(const Account&)>& ns) const;
  double counter(std::string_view name) const;
  /// CPU time of a named target's processes, by their own counters.
  double cpu_s() const { return counter("target.user_s") + counter("target.system_s"); }
  std::string_view text(std::string_view name) const;
};

/// As lines of JSON, and back. `where` is for errors.
std::string to_lines(const Facts& facts);
Result<Facts> from_lines(std::string_view lines, std::string_view where);

}  // namespace coretap::why
