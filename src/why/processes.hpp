// Counters of the processes that `why` is about, and their queries to name servers.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "why/counters.hpp"
#include "why/facts.hpp"

namespace coretap::why {

/// At most 256, in the order of /proc; none for a whole machine.
std::vector<std::uint32_t> processes_of(const Target& target);

/// Names begin with "process.PID.": CPU time in the program and in the kernel, that of children
/// that have ended, and calls that read and write, with their bytes.
void read_processes(Counters& to, const std::vector<std::uint32_t>& pids);

/// Replaces them, once only their growth is left, by sums that begin with "target.".
void add_up_processes(Counters& grown);

/// UDP sockets that are connected to port 53: the resolvers of glibc and Go have one for as long as
/// they wait for an answer. They are looked at again and again; those of other processes in the
/// network namespace do not count. A resolver that keeps its socket looks as if it always waited.
class NameQueries {
 public:
  explicit NameQueries(std::vector<std::uint32_t> pids) : pids_(std::move(pids)) {}

  /// Call it every interval() or later.
  void look();
  /// Such that looking takes at most a fiftieth of a CPU. Zero: there is nothing to look at.
  std::chrono::milliseconds interval() const;
  /// Adds the counter "names.waited_us", the sum over all sockets, and the setting "names.server".
  void add_to(Facts& facts) const;

 private:
  bool owned(std::uint64_t inode);

  using Clock = std::chrono::steady_clock;
  std::vector<std::uint32_t> pids_;
  std::map<std::uint64_t, bool> owned_;  // by inode
  Clock::time_point last_ = Clock::now();
  Clock::duration cost_{};  // of the last look
  std::uint64_t waited_us_ = 0;
  std::string server_;
};

}  // namespace coretap::why
