// A tool's row in the table of stress tests, declared by the tool's test file.
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

/// Kind of a report. Tests of a kind use one tool of that kind: slow or vanishing readers, full
/// disks, wrong numbers.
enum class ReportKind { events, aggregate, stacks, allocations, snapshot, recorder };

}  // namespace coretap::tooltest

namespace coretap::stress {

using tooltest::Json;
using tooltest::ReportKind;
using tooltest::Strings;

/// The kernel's counts over all threads of a process at rest.
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
  void finish();  ///< waits until it has printed its truth
  tooltest::Workload& workload() { return workload_; }
  std::uint64_t truth(const char* key) { return workload_.truth()[key].u64(); }
  /// The sum of `count` over the threads, each applied to the growth between release and rest.
  std::uint64_t grown(const std::function<std::uint64_t(const Rest::Thread&)>& count) const;

 private:
  tooltest::Workload workload_;
  Rest before_, after_;
};

/// Number of events that a line represents: the sum of its keys "a+b"; without keys one.
struct Shown : std::function<std::uint64_t(const Json& line)> {
  Shown(const char* keys);
  template <std::invocable<const Json&> F>
  Shown(F f) : function(std::move(f)) {}
};
/// Number of events: the sum of the numbers "a+b" that the workload prints.
struct Truth : std::function<std::uint64_t(Load& load)> {
  Truth() = default;
  Truth(std::nullptr_t) = delete;  // not the empty list of keys
  Truth(const char* keys);
  template <std::invocable<Load&> F>
  Truth(F f) : function(std::move(f)) {}
};

/// How a tool is run in a stress test, and which counts must match.
struct Row {
  /// Its name and arguments; {n}, {n/3}, {n/3+1} become the number of events, or parts of it.
  Strings workload;
  std::uint64_t events;  ///< of each workload, on a usual machine
  Strings options = {};  ///< of the tool
  Shown shown = "";
  /// Number of events, known from the workload or from the kernel's counts of it.
  Truth truth = {};
  /// The smallest buffers and tables; some of the events must not fit.
  Strings tiny = {};
  int workloads = 2;  ///< one on each CPU; 1: the resource they use exists once
  /// In the short form, copies that run at once: the kernel needs a tenth of a second to remove
  /// each probe of some tools, one after another.
  int copies = 24;
  bool by_cgroup = false;  ///< includes events of its children
  Strings pids = {};       ///< the processes to trace, by keys of the workload's ready line
  /// Additional events that a workload cannot know of.
  std::uint64_t slack = 0;
  Truth hidden = {};              ///< part of the truth that no tool can see, at most
  double tolerance = 0;           ///< sampled: the allowed relative deviation
  bool uncounted = false;         ///< only the tool knows the number of events
  std::string kernel_event = {};  ///< the truth: the kernel trace's count of this event
  std::string tool = {};          ///< set by the declaration
  ReportKind kind = ReportKind::events;

  // The same row with this slack.
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

/// For tools that show each event: a small ring loses some.
inline Row event_row(const Strings& workload, std::uint64_t events, const Truth& truth,
                     const Strings& options = {}, const Strings& pids = {}) {
  return {.workload = workload,
          .events = events,
          .options = options,
          .truth = truth,
          .tiny = "--ring-size 4096",
          .pids = pids};
}
/// For tools that count, in total and by key; a small table has no room for all keys.
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

/// The processes of Row::pids; without it the workload's own.
Strings wanted_pids(const Row& row, Load& load);
/// The workload's arguments for this number of events.
Strings arguments(const Row& row, std::uint64_t events);

// Parts that several rows share.

/// The arguments of the sleeper for n sleeps.
Strings sleeps();
/// Row::truth of tools that show waits in progress: how often the threads of the workload left
/// their CPUs; for any reason, and only to wait.
std::uint64_t all_leaves(Load& load);
std::uint64_t waits(Load& load);

}  // namespace coretap::stress
