// A tool's row in the table of the stress tests, as its test file declares it.
#pragma once
#include <sys/types.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>

#include "tools/tracer.hpp"

namespace coretap::tooltest {

/// Of a report. What belongs to a kind is tested with one tool of that kind: readers that stall or
/// go away, full disks, wrong numbers.
enum class ReportKind { events, aggregate, stacks, allocations, snapshot, recorder };

}  // namespace coretap::tooltest

namespace coretap::stress {

using tooltest::Json;
using tooltest::ReportKind;
using tooltest::Strings;

/// What the kernel counts of all threads of a process while they rest.
struct Rest {
  struct Thread {
    std::uint64_t voluntary = 0, preempted = 0, slices = 0, on_cpu_ns = 0, run_delay_ns = 0;
    std::uint64_t ticks_ns = 0;  ///< utime and stime
  };
  std::map<std::string, Thread> threads;
  static Rest of(pid_t pid);
};

/// A workload: held, then released, then at rest again.
class Load {
 public:
  Load(const std::string& name, const Strings& arguments, int cpu);

  void release() { workload_.release(); }
  void finish();  ///< until it has said its truth
  tooltest::Workload& workload() { return workload_; }
  std::uint64_t truth(const char* key) { return workload_.truth()[key].u64(); }
  /// Summed over the threads, of each what `count` makes of its growth while it was loose.
  std::uint64_t grown(const std::function<std::uint64_t(const Rest::Thread&)>& count) const;

 private:
  tooltest::Workload workload_;
  Rest before_, after_;
};

/// How many events a line stands for: the sum of its keys "a+b"; one without keys.
struct Shown : std::function<std::uint64_t(const Json& line)> {
  Shown(const char* keys);
  template <std::invocable<const Json&> F>
  Shown(F f) : function(std::move(f)) {}
};
/// How many events there were: the sum of the numbers "a+b" that the workload says.
struct Truth : std::function<std::uint64_t(Load& load)> {
  Truth() = default;
  Truth(std::nullptr_t) = delete;  // not the empty list of keys
  Truth(const char* keys);
  template <std::invocable<Load&> F>
  Truth(F f) : function(std::move(f)) {}
};

/// How a tool is called in trouble, and what it must then account for.
struct Row {
  /// Its name and arguments; {n}, {n/3}, {n/3+1} are replaced by the number of events, and parts.
  Strings workload;
  std::uint64_t events;  ///< of each workload, on a usual machine
  Strings options = {};  ///< of the tool
  Shown shown = "";
  /// What the workload knows, or the kernel of the workload.
  Truth truth = {};
  /// The smallest buffers and tables; some of the events must not fit.
  Strings tiny = {};
  int workloads = 2;  ///< one on each CPU; 1: of what they take there is but one
  /// At once, in the short form: the kernel takes a tenth of a second to take away each of the
  /// probes of some tools, one after another.
  int copies = 24;
  bool by_cgroup = false;  ///< its events are those of its children, too
  Strings pids = {};       ///< whose events are wanted, by keys of what it says when it is ready
  /// Events of its own that a workload cannot know of.
  std::uint64_t slack = 0;
  Truth hidden = {};              ///< of the truth, so many at most that no tool can see
  double tolerance = 0;           ///< samples: a part of the truth
  bool uncounted = false;         ///< nobody but the tool knows how many events there were
  std::string kernel_event = {};  ///< truth is what the kernel's own trace says of this event
  std::string tool = {};          ///< set where it is declared
  ReportKind kind = ReportKind::events;

  // The same row but for this.
  Row with_slack(std::uint64_t n) const { return with(&Row::slack, n); }
  Row with_copies(int n) const { return with(&Row::copies, n); }
  Row with_children() const { return with(&Row::by_cgroup, true); }
  Row of_one_workload() const { return with(&Row::workloads, 1); }
  Row sampled(double part) const { return with(&Row::tolerance, part); }
  Row not_known() const { return with(&Row::uncounted, true); }
  Row by_kernel_event(const char* event) const { return with(&Row::kernel_event, event); }

 private:
  template <class T>
  Row with(T Row::*member, const std::type_identity_t<T>& value) const {
    auto row = *this;
    row.*member = value;
    return row;
  }
};

/// Of tools that show each event: a small ring loses some.
inline Row event_row(const Strings& workload, std::uint64_t events, const Truth& truth,
                     const Strings& options = {}, const Strings& pids = {}) {
  return {.workload = workload,
          .events = events,
          .options = options,
          .truth = truth,
          .tiny = "--ring-size 4096",
          .pids = pids};
}
/// Of tools that count: in all, and by keys, of which a small table has not room for all.
inline Row total_row(const Strings& workload, std::uint64_t events, const Shown& shown,
                     const Truth& truth, const Strings& options = {}, const Strings& pids = {}) {
  return {.workload = workload,
          .events = events,
          .options = options,
          .shown = shown,
          .truth = truth,
          .pids = pids,
          .kind = ReportKind::aggregate};
}
inline Row count_row(const Strings& workload, std::uint64_t events, const Shown& shown,
                     const Truth& truth, const Strings& options = {}, const Strings& pids = {}) {
  auto row = total_row(workload, events, shown, truth, options, pids);
  row.tiny = "--max-keys 1";
  return row;
}
inline Row stack_row(const Strings& workload, std::uint64_t events, const Truth& truth,
                     const Strings& options = {}) {
  auto row = total_row(workload, events, "count", truth, options);
  row.tiny = "--stack-storage-size 1";
  row.kind = ReportKind::stacks;
  return row;
}

/// Of Row::pids, the workload's own where it has none.
Strings wanted_pids(const Row& row, Load& load);
/// The workload's arguments for this number of events.
Strings arguments(const Row& row, std::uint64_t events);

// What several rows have in common.

/// The sleeper for n sleeps.
Strings sleeps();
/// For Row::truth of tools that show waits which are still under way: how often the threads of the
/// workload left their CPUs; all, and only to wait.
std::uint64_t all_leaves(Load& load);
std::uint64_t waits(Load& load);

}  // namespace coretap::stress
