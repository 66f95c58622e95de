// Which tables hold where in each traced process, in the kernel's maps.
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

  /// Looks at the process' mappings, reads the tables of new files and tells the kernel program.
  /// `program`: program_of(), by which the kernel program knows it. `asked`: it has come upon code
  /// that it does not know; what is missing now is nowhere. False: the process is gone, or there
  /// is no room, or nothing is new.
  bool look(pid_t tgid, std::uint64_t program, bool asked);
  /// It has mapped something, if it is known; `asked` as above.
  void changed(pid_t tgid, bool asked);
  /// Looks at those that have: the ones where something is new. A process that does it all the
  /// time, with thousands of mappings, has to wait.
  std::vector<pid_t> look_at_changed(Clock::time_point now);
  /// What its addresses mean now (STACK_IMAGE()), if it is known.
  std::optional<std::uint32_t> image(pid_t tgid) const;
  /// The same of one of its programs, which began with the first generation.
  std::uint32_t image(pid_t tgid, std::uint64_t program) const;
  std::vector<pid_t> known() const;
  /// Those that frames may be in by number.
  const symbols::NumberedFiles& files() const { return numbered_; }
  /// It has its parent's mappings; the kernel program knows that already.
  void forked(pid_t tgid, std::uint64_t program, pid_t parent);
  /// Reads the tables of a process that will be traced: they are there when it is first met.
  void expect(pid_t tgid);
  /// The same; and the kernel program has them at once. Only where process ids are those of the
  /// first pid namespace.
  void name(pid_t tgid);
  /// Reads the table of a file that a process has mapped; of what is its own, the vdso too.
  void know(pid_t tgid, const symbols::Mapping& mapping) { file_of(tgid, mapping); }
  void know_own();
  /// The same of a file by its path, or by a handle of it.
  void know(const std::string& path);
  void know(const Fd& handle);
  /// A handle of the program that a process runs, if its table has not been read; without reading
  /// it, as others that end soon are waiting.
  Fd unread_program(pid_t tgid);
  /// The same of a file by its path as that process sees it, or saw it.
  Fd unread_file(pid_t tgid, const std::string& path);
  /// From time to time: what has ended is forgotten, what had no room is tried again.
  void tend(Clock::time_point now);

  /// Told of each file that has no room, once.
  std::function<void(const std::string& path)> no_room;
  /// Told of each file whose table is there, or known to be none; open for reading.
  std::function<void(int fd, const KnownFile&)> has_read;
  /// Of our own vdso, which all have; others may have changed theirs.
  std::function<void(const KnownFile&)> has_read_vdso;
  /// Told before each file that is read.
  std::function<void(const std::string& path)> reading;

 private:
  struct Part {
    symbols::Mapping mapping;
    KnownFile file;  // without a table: not from a file
  };
  /// The same for all processes with the same mappings: those of a fork server.
  struct Run {
    std::uint32_t first = 0;
    std::vector<unwind_mapping> mappings;
    std::vector<std::shared_ptr<File>> files;  // of each
  };
  /// What has been at its addresses without contradiction: stacks of that time are of one kind.
  struct Generation {
    std::uint16_t number = 0;
    std::shared_ptr<const std::map<std::uint64_t, symbols::Mapping>> by_end;
  };
  struct Process {
    std::uint64_t program = 0;
    std::uint64_t started = 0;  // clock ticks after boot; tells a reused process id
    std::shared_ptr<const std::vector<Part>> parts;  // with its forks
    std::shared_ptr<Run> run;
    std::vector<Generation> generations;  // the last ones
    std::uint16_t generation = 0;         // that holds now
    Clock::time_point next_look{};
  };
  struct Retired {
    Clock::time_point since;
    std::uint32_t first, count;
  };

  /// `before`: what it had, or null.
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
  void forget_ended();
  void retire_runs(Clock::time_point now);
  void make_room_from_unused(Clock::time_point now);

  Maps maps_;
  Tables& tables_;
  std::string proc_root_;
  symbols::NumberedFiles numbered_;
  Extents room_{UNWIND_MAPPINGS};
  std::unordered_map<pid_t, Process> processes_;
  std::map<std::uint64_t, std::vector<std::shared_ptr<Run>>> runs_;  // by a hash of their mappings
  std::vector<Retired> retired_;
  std::set<std::uint64_t> strangers_;  // entries of processes that we do not know
  std::map<pid_t, bool> changed_;      // asked
  std::set<std::string> told_;         // files without room
  Clock::time_point next_sweep_{}, next_try_{}, next_turn_{};
};

}  // namespace coretap::unwind
