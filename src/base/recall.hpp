// Answers of the system that reports ask for: names of disks, cgroups and symbols, numbers of CPUs.
// While a run is recorded (src/record), each is also written into the recording. When a recording
// is shown, they come from it alone, and nothing asks the system.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

/// Kinds of questions. The numbers are part of the format of recordings: never reuse one.
enum class Ask : std::uint8_t {
  enumerators = 1,       ///< of an enum of the kernel
  disk = 2,              ///< name of a device number
  cgroup = 3,            ///< names of a cgroup id
  kernel_symbol = 4,     ///< of an address
  user_symbol = 5,       ///< of an address in a process
  kernel_symbols = 6,    ///< why the kernel's symbols cannot be read
  addresses_hidden = 7,  ///< why kernel addresses are hidden
  own_process = 8,       ///< the recorder's process id
  online_cpus = 9,
  possible_cpus = 10,
  page_bytes = 11,
  file = 12,         ///< contents of a file of /proc or /sys
  hooks = 13,        ///< what was attached
  limits = 14,       ///< of what is reported on this kernel
  targets = 15,      ///< names of the targets
  tick = 16,         ///< time between two samples
  kernel = 17,       ///< its release
  totals = 18,       ///< counters that the loader reads
  user = 19,         ///< name of a user id
  kernel_has = 20,   ///< a type, member or function; a number
  inode = 21,        ///< of a cgroup's directory
  directories = 22,  ///< names of those in a cgroup's directory
  counts = 23,       ///< of perf events that the loader reads
  syscall = 24,      ///< name, table and arguments of a system call
  clocks = 25,       ///< all clocks at the moment that a trace begins or goes on with
  report = 26,       ///< what a report has found out at the start
  fine_slots = 27,   ///< does a map have histograms with fine slots (bpf/lib/aggregate/fine.h)?
};

class Recall {
 public:
  virtual ~Recall() = default;
  /// True if answers come from a recording; its `answer` does not call `live`.
  virtual bool replays() const = 0;
  /// The recorded answer (empty: there is none), or that of `live`, which is written if it is new.
  virtual std::string answer(Ask what, std::string_view question,
                             const std::function<std::string()>& live) = 0;
};

/// nullptr: the run is not recorded, and no recording is shown.
inline Recall* recall = nullptr;  // one for the process, like the clock

/// While it exists, questions go to this object; then the system answers, and the clock is its own.
class Recalling {
 public:
  explicit Recalling(Recall& one) { recall = &one; }
  ~Recalling();
  Recalling(const Recalling&) = delete;
  Recalling& operator=(const Recalling&) = delete;
};

inline bool replaying() { return recall && recall->replays(); }

template <class Live>
std::string recalled(Ask what, std::string_view question, Live live) {
  return recall ? recall->answer(what, question, live) : live();
}

/// Several texts in one, and back. Bytes that are not of this form end the list.
std::string packed(const std::vector<std::string>& texts);
std::vector<std::string> unpacked(std::string_view bytes);

/// A number as protobuf's varint, and back: takes it off `bytes`; false: there is none.
void put_varint(std::string& to, std::uint64_t value);
bool take_varint(std::string_view& bytes, std::uint64_t& value);

}  // namespace coretap
