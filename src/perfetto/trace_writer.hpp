// Traces for Perfetto (ui.perfetto.dev): tracks with slices, instants and counters, arrows between
// them, and what CPUs run. Knows nothing of tools. Pure: events in, bytes out.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace coretap::perfetto {

/// The same moment on three clocks, in nanoseconds.
struct Clocks {
  std::uint64_t monotonic = 0, boot = 0, real = 0;
};

struct System {
  std::string name, release, version, machine;  ///< as uname(2) has them
};

/// Tracks with equal uuids are one. The writer describes a track before its first event.
struct Track {
  std::uint64_t uuid = 0;
  std::string_view name = {};
  std::uint64_t parent = 0;        ///< uuid; 0: none
  std::uint32_t pid = 0, tid = 0;  ///< the track of a thread, or without tid of a process
  std::string_view unit = {};      ///< of a counter; empty: the track has slices
};

/// Importers take a second uuid for a second thread with the same ids: writers whose traces become
/// one file must have the same one.
Track thread_track(std::uint32_t pid, std::uint32_t tid);
Track process_track(std::uint32_t pid);
/// Of the gaps in which events were lost.
std::uint64_t lost_track(std::uint32_t number);
inline constexpr std::string_view kLostTrack = "coretap: lost";

struct Address {
  std::uint64_t value;
};
struct Argument {
  std::string_view name;
  std::variant<std::uint64_t, std::int64_t, bool, double, std::string_view, Address> value;
};

struct Event {
  std::string_view name;
  std::span<const Argument> arguments = {};
  std::uint64_t flow = 0;         ///< an arrow goes through this event; 0: none
  std::uint64_t ending_flow = 0;  ///< an arrow ends here
  std::string_view category = {};
};

/// As the tracepoint sched_switch prints it: bits of the state of a task that leaves the CPU.
std::uint32_t printed_state(std::uint32_t state, bool preempted);
inline constexpr std::uint32_t kUnknownState = 0x200;  ///< no state of the kernel

/// The waker, if it is not the task that the CPU runs.
enum WakerFlag : std::uint32_t { kHardInterrupt = 8, kSoftInterrupt = 16 };

/// All times are of the monotonic clock. Text may be anything: it is made safe.
class TraceWriter {
 public:
  /// Receives the bytes of the trace in order, in parts of any size.
  using Write = std::function<void(std::string_view bytes)>;

  /// `sequence`: not 0; different for writers whose traces become one file.
  TraceWriter(std::uint32_t sequence, Write write);

  /// First: events before it have no time. Again after at most some seconds.
  void clocks(const Clocks& now);
  void system(const System& system);

  /// A track that another one has as parent, or whose name matters without events.
  void describe(const Track& track);
  void slice(const Track& track, std::uint64_t begin_ns, std::uint64_t end_ns, const Event& event);
  void instant(const Track& track, std::uint64_t time_ns, const Event& event);
  void count(const Track& track, std::uint64_t time_ns, double value);

  void process(std::uint32_t pid, std::uint32_t parent, std::string_view name);
  void thread(std::uint32_t tid, std::uint32_t process, std::string_view name);

  /// A name of tasks, for the events below. Names are valid until forget_names().
  using Name = std::uint32_t;
  Name name(std::string_view task);
  std::size_t names() const { return names_.size(); }
  void forget_names();

  /// The events of each CPU in the order of their times. Importers know no CPUs above 1023: their
  /// events are left out.
  void switches(std::uint32_t cpu, std::uint64_t time_ns, std::uint32_t state, std::uint32_t next,
                std::int32_t prio, Name name);
  void wakes(std::uint32_t cpu, std::uint64_t time_ns, std::uint32_t tid, std::uint32_t target_cpu,
             std::int32_t prio, Name name, std::uint32_t waker);

  /// Writes what is kept: events of CPUs and packets.
  void flush();
  /// Starts a part that can be read without the parts before.
  void begin_part();

 private:
  /// Names by which packets refer to text: numbers from 1.
  struct Interned {
    std::unordered_map<std::string, std::uint64_t> ids;
    std::vector<std::pair<std::uint64_t, std::string_view>> fresh;  ///< for the next packet
    std::uint64_t id(std::string_view text, std::size_t& bytes);
  };
  /// Events of a CPU since its last bundle, in columns.
  struct Bundle {
    std::string switch_time, switch_state, switch_pid, switch_prio, switch_name;
    std::string waking_time, waking_pid, waking_cpu, waking_prio, waking_name, waking_flags;
    std::uint64_t begin_ns = 0, last_switch = 0, last_waking = 0;
    std::vector<Name> names;
    std::unordered_map<Name, std::uint32_t> index;
    std::size_t events = 0;
    Name last_name = UINT32_MAX;
    std::uint32_t last_index = 0;
    std::uint32_t index_of(Name name);
  };

  template <class Fill>
  void packet(Fill fill);
  /// Text that packets from this one on refer to.
  template <class Packet>
  void add_interned(Packet& packet);
  Bundle& bundle(std::uint32_t cpu, std::uint64_t time_ns);
  void write_bundle(std::uint32_t cpu, Bundle& b);
  void event(const Track& track, std::uint64_t time_ns, unsigned type, const Event* event,
             const double* value = nullptr);
  void send();

  std::uint32_t sequence_;
  Write write_;
  std::string out_;
  bool state_cleared_ = false;  ///< the first packet of a part was written
  Clocks clocks_;
  Interned categories_, event_names_, argument_names_, texts_of_arguments_;
  std::size_t interned_bytes_ = 0;
  std::unordered_set<std::uint64_t> described_;  ///< tracks
  std::unordered_map<std::string, Name> names_;
  std::vector<std::string> texts_;  ///< of names
  std::vector<Bundle> bundles_;     ///< by CPU
};

}  // namespace coretap::perfetto
