// Maintains, in the kernel's maps, which unwind tables apply to the addresses of traced processes.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtimes/hotspot.hpp"
#include "symbols/numbered_files.hpp"
#include "symbols/proc_maps.hpp"
#include "unwind/extents.hpp"
#include "unwind/tables.hpp"

struct bpf_map;

namespace coretap::unwind {

class Processes {
 public:
  using Clock = std::chrono::steady_clock;

  struct Maps {
    int mappings = -1;                   ///< unwind_mappings
    const bpf_map* processes = nullptr;  ///< unwind_processes
  };
  Processes(Maps maps, Tables& tables, std::string proc_root = "/proc");

  /// Reads the process' mappings and the tables of new files, and updates the kernel program's
  /// maps. `program`: the kernel program's key, program_of(). `asked`: the kernel program has found
  /// code that is in no known mapping; what is missing after this look does not exist. False: the
  /// process is gone, or there is no room, or nothing is new.
  bool look(pid_t tgid, std::uint64_t program, bool asked);
  /// Marks a known process as having new mappings; `asked` as above.
  void changed(pid_t tgid, bool asked);
  /// Scans the marked processes; returns those with something new. A process that is marked all the
  /// time, with thousands of mappings, is delayed.
  std::vector<pid_t> look_at_changed(Clock::time_point now);
  /// The current image of its addresses (stack_image()), if it is known.
  std::optional<std::uint32_t> image(pid_t tgid) const;
  /// The same for one of its programs; without an entry, the first generation.
  std::uint32_t image(pid_t tgid, std::uint64_t program) const;
  std::vector<pid_t> known() const;
  /// The files that frames may refer to by number.
  const symbols::NumberedFiles& files() const { return numbered_; }
  /// The process has its parent's mappings; the kernel program knows that already.
  void forked(pid_t tgid, std::uint64_t program, pid_t parent);
  /// Reads the tables of a process that will be traced, before its first stack.
  void expect(pid_t tgid);
  /// The same, and stores them for the kernel program at once. Only if process ids are those of the
  /// initial pid namespace.
  void name(pid_t tgid);
  /// Reads the table of a file that a process has mapped. know_own(): of this process' vdso.
  void know(pid_t tgid, const symbols::Mapping& mapping) { file_of(tgid, mapping); }
  void know_own();
  /// The same for a file by path, or by handle.
  void know(const std::string& path);
  void know(const Fd& handle);
  /// A handle of the program that a process runs, if its table has not been read. Does not read it,
  /// as other processes that end soon are waiting.
  Fd unread_program(pid_t tgid);
  /// The same for a file by its path in that process' root directory.
  Fd unread_file(pid_t tgid, const std::string& path);
  /// Call regularly: forgets ended processes, and retries files without room.
  void tend(Clock::time_point now);

  /// Called once for each file without room for its table.
  std::function<void(const std::string& path)> no_room;
  /// Called for each file whose table was read, or does not exist; the file is open for reading.
  std::function<void(int fd, const KnownFile&)> has_read;
  /// Called for this process' vdso, which all processes share unless they change theirs.
  std::function<void(const KnownFile&)> has_read_vdso;
  /// For processes with HotSpot; null: they are as others.
  runtimes::HotSpots* hotspots = nullptr;
  /// Called before each file that is read.
  std::function<void(const std::string& path)> reading;

 private:
  struct Part {
    symbols::Mapping mapping;
    KnownFile file;  // no table: the mapping has no file
  };
  /// Shared by all processes with the same mappings, such as those of a fork server.
  struct Run {
    std::uint32_t first = 0;
    std::vector<unwind_mapping> mappings;
    std::vector<std::shared_ptr<File>> files;  // for each mapping
  };
  /// Mappings that did not contradict each other over time: one image for stacks of that time.
  struct Generation {
    std::uint16_t number = 0;
    std::shared_ptr<const std::map<std::uint64_t, symbols::Mapping>> by_end;
  };
  struct Process {
    std::uint64_t program = 0;
    std::uint64_t started = 0;  // clock ticks after boot; detects a reused process id
    std::shared_ptr<const std::vector<Part>> parts;  // shared with its forks
    std::shared_ptr<Run> run;
    std::vector<Generation> generations;  // the last ones
    std::uint16_t generation = 0;         // the current one
    Clock::time_point next_look{};
    std::shared_ptr<const runtimes::HotSpots::Process> hotspot;
    bool hotspot_unknown = false;  ///< it has a HotSpot of a version that is not known
  };
  struct Retired {
    Clock::time_point since;
    std::uint32_t first, count;
  };

  /// `before`: the previous mappings, or null.
  std::optional<std::vector<Part>> read(pid_t tgid, const std::vector<Part>* before);
  using Seen = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>,
                        KnownFile>;  // by device and inode
  KnownFile file_of(pid_t tgid, const symbols::Mapping& mapping);
  KnownFile file_by(const Fd& handle, const std::string& path, pid_t mapped_by);
  Fd if_unread(Fd handle);
  KnownFile vdso_of(pid_t tgid, const symbols::Mapping& mapping);
  std::shared_ptr<Run> run_of(const std::vector<Part>& parts);
  static void choose_generation(Process& process);
  bool tell(const Process& process, bool looked);
  bool find_hotspot(pid_t tgid, Process& process);
  void look_at_starting();
  void forget_ended();
  void retire_runs(Clock::time_point now);
  void make_room_from_unused(Clock::time_point now);

  Maps maps_;
  Tables& tables_;
  std::string proc_root_;
  symbols::NumberedFiles numbered_;
  Extents room_{UNWIND_MAPPINGS};
  std::unordered_map<pid_t, Process> processes_;
  std::map<std::uint64_t, std::vector<std::shared_ptr<Run>>> runs_;  // by hash of the mappings
  std::vector<Retired> retired_;
  std::set<std::uint64_t> strangers_;   // entries of unknown processes
  std::map<pid_t, bool> changed_;       // value: asked
  std::map<pid_t, unsigned> starting_;  // with HotSpot, which is not ready; value: tries left
  std::set<std::string> told_;          // files without room
  Clock::time_point next_sweep_{}, next_try_{}, next_turn_{};
};

}  // namespace coretap::unwind
