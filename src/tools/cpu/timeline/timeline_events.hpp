// From the records of timeline to a trace: which tasks there are, what CPUs run, what was lost.
// Pure.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cpu/timeline.h"
#include "perfetto/trace_writer.hpp"

namespace coretap {

class TimelineEvents {
 public:
  struct Words {
    std::function<std::string(std::uint32_t)> disk, operation;  ///< of requests: their names
    std::function<std::string(std::uint32_t)> call;             ///< of a system call: its name
  };
  struct Counts {
    std::uint64_t of[TIMELINE_KINDS] = {};  ///< by kind of record
    std::uint64_t lost = 0;                 ///< records in gaps
    std::uint64_t repaired = 0;             ///< switches that the kernel did not report
    std::uint64_t shown() const;
    Counts since(const Counts& earlier) const;
    void take_away(const Counts& others);
  };

  TimelineEvents(perfetto::TraceWriter& to, Words words) : to_(to), words_(std::move(words)) {}

  /// Switches before this moment do not count: not all programs were attached. `filtered`: of
  /// connections only those that tasks in the records used.
  void begin(std::uint64_t time_ns, bool with_switches, bool filtered = false) {
    began_ns_ = time_ns;
    with_switches_ = with_switches;
    filtered_ = filtered;
  }
  void take(const void* record, std::size_t size);
  /// Before what is written is complete.
  void finish();
  /// When tracing has ended: connections that have not.
  void end_connections();
  /// Starts a part that can be read without the parts before.
  void begin_part();
  /// All tasks that are known, for the beginning of a trace.
  void write_tasks();

  const Counts& counts() const { return counts_; }

 private:
  struct Task {
    std::uint32_t tgid = 0, parent = 0;
    std::array<std::uint64_t, 2> comm{};
    perfetto::TraceWriter::Name name = 0;
  };
  /// Tracks beside each other for what may overlap: the end of the last slice of each.
  using Lanes = std::vector<std::uint64_t>;
  struct Cpu {
    bool begun = false;
    timeline_task running{};
    std::int32_t prio = 0;
    std::uint64_t sure_ns = 0;  ///< it runs at least until then
    std::uint64_t gap_end = 0;  ///< of a gap whose end is not written yet; 0: none
    Lanes interrupts, softirqs;
  };

  struct Connection {
    std::uint64_t number = 0;  ///< 0: not known yet
    std::uint64_t since_ns = 0;
    std::uint32_t state = 0;
    std::uint64_t from_task = 0, to_task = 0;  ///< arrows: from connect, to accept
    struct flow flow {};
    bool used = false;  ///< by a task in the records
  };

  Cpu& cpu(std::uint32_t number);
  /// The task's entry, written if it is new. `parent`: null if it is not known.
  Task& know(const timeline_task& task, const std::uint32_t* parent = nullptr);
  perfetto::TraceWriter::Name name_of(const timeline_task& task);
  void run(std::uint32_t number, Cpu& c, std::uint64_t time_ns, std::uint32_t state,
           const timeline_task& next, std::int32_t prio);
  /// The CPU runs something that is not known from this time on.
  void lose(std::uint32_t number, Cpu& c, std::uint64_t from_ns);
  void end_gap(std::uint32_t number, Cpu& c);
  /// The CPU runs this task now. False: a switch to it was not reported, and the task that was
  /// thought to run is ended.
  bool agrees(std::uint32_t number, Cpu& c, std::uint64_t time_ns, std::uint32_t tid);

  void task_event(const timeline_task_event& e);
  void switched(const timeline_task_event& e, Cpu& c);
  void wakes(const timeline_task_event& e, Cpu& c);
  void gap(const timeline_gap& g);
  void interrupt(const timeline_interrupt& i);
  void call(const timeline_call& c);
  void show_call(const timeline_call& c, std::uint64_t end_ns,
                 std::span<const perfetto::Argument> arguments);
  void request(const timeline_request& r);
  void fault(const timeline_fault& f);
  void net(const timeline_net& n);
  Connection& connection(const timeline_net& n);
  void state_ends(Connection& c, std::uint64_t time_ns, bool unfinished);

  perfetto::Track thread(const timeline_task& task);

  perfetto::TraceWriter& to_;
  Words words_;
  Counts counts_;
  bool with_switches_ = true, filtered_ = false;
  std::uint64_t began_ns_ = 0, newest_ns_ = 0, next_flow_ = 1;
  std::unordered_map<std::uint32_t, Task> tasks_;
  std::unordered_map<std::uint32_t, timeline_call> unfinished_;  ///< by thread
  std::vector<Cpu> cpus_;
  std::unordered_map<std::uint32_t, Lanes> disks_;
  std::unordered_map<std::uint64_t, Connection> connections_;  ///< by socket
  std::uint64_t connections_seen_ = 0;
};

}  // namespace coretap
