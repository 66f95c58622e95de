// A tool in trouble is still to tell the truth: what it shows and what it counts as not shown are
// all that its workloads say they did. A row for each tool, a cell for each kind of trouble.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/harness.hpp"

namespace coretap::stress {

using tooltest::Json;
using tooltest::Strings;

/// What the kernel counts of all threads of a process while they rest.
struct Rest {
  struct Thread {
    std::uint64_t voluntary = 0, preempted = 0, slices = 0, on_cpu_ns = 0;
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

struct Row {
  std::string tool, workload;
  /// The workload's arguments for so many events.
  Strings (*arguments)(std::uint64_t events);
  std::uint64_t events;  ///< of each workload, on a usual machine
  Strings options = {};  ///< of the tool
  /// What a line stands for.
  std::uint64_t (*shown)(const Json& line);
  /// What the workload knows, or the kernel of the workload.
  std::uint64_t (*truth)(Load& load);
  /// The smallest buffers and tables; some of the events must not fit.
  Strings tiny = {};
  int workloads = 2;  ///< one on each CPU
  /// At once, in the short form: the kernel takes a tenth of a second to take away each of the
  /// probes of some tools, one after another.
  int copies = 24;
  bool by_cgroup = false;                 ///< its events are those of its children, too
  Strings (*pids)(Load& load) = nullptr;  ///< whose events are wanted, if not the workload's
  /// Events of its own that a workload cannot know of.
  std::uint64_t slack = 0;
  double tolerance = 0;           ///< samples: a part of the truth
  std::string kernel_event = {};  ///< truth is what the kernel's own trace says of this event
};

const std::vector<Row>& rows();

/// What a ledger's causes are called that stand for events which are not shown.
inline constexpr const char* kNotShown[] = {"lost", "untracked", "unmatched", "overwritten"};

struct Outcome {
  std::string tool, trouble, result, reason;
  std::uint64_t truth = 0, shown = 0, missed = 0;
  std::map<std::string, std::uint64_t> not_shown;
  int attempts = 1;
  double seconds = 0;

  std::uint64_t seen() const;
  std::string sum() const;  ///< "40000 = 39000 + 1000 lost"
};

}  // namespace coretap::stress
