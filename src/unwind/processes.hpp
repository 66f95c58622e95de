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

#include "symbols/proc_maps.hpp"
#include "unwind/extents.hpp"
#include "unwind/tables.hpp"

struct bpf_map;

namespace coretap::unwind {

class Processes {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSweep{2};

  struct Maps {
    int mappings = -1;                   ///< unwind_mappings
    const bpf_map* processes = nullptr;  ///< unwind_processes
  };
  Processes(Maps maps, Tables& tables, std::string proc_root = "/proc");

  /// Looks at the process' mappings, reads the tables of new files and tells the kernel program.
  /// `program`: program_of(), by which the kernel program knows it. False: it is gone, or there is
  /// no room.
  bool look(pid_t tgid, std::uint64_t program);
  /// It has mapped something: looks again, if it is known.
  void changed(pid_t tgid);
  void all_changed();
  /// It has its parent's mappings; the kernel program knows that already.
  void forked(pid_t tgid, std::uint64_t program, pid_t parent);
  /// Reads the tables of a process that will be traced: they are there when it is first met.
  void expect(pid_t tgid);
  /// From time to time: what has ended is forgotten, what had no room is tried again.
  void tend(Clock::time_point now);

  std::size_t known() const { return processes_.size(); }
  /// Told of each file that has no room, once.
  std::function<void(const std::string& path)> no_room;
  /// Told before each file that is read.
  std::function<void(const std::string& path)> reading;

 private:
  struct Part {
    symbols::Mapping mapping;
    std::shared_ptr<File> file;  // null: not from a file
  };
  /// The same for all processes with the same mappings: those of a fork server.
  struct Run {
    std::uint32_t first = 0;
    std::vector<unwind_mapping> mappings;
    std::vector<std::shared_ptr<File>> files;  // of each
  };
  struct Process {
    std::uint64_t program = 0;
    std::uint64_t started = 0;  // clock ticks after boot; tells a reused process id
    std::vector<Part> parts;
    std::shared_ptr<Run> run;
  };
  struct Retired {
    Clock::time_point since;
    std::uint32_t first, count;
  };

  std::optional<std::vector<Part>> read(pid_t tgid, const std::vector<Part>& before);
  using Seen = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>,
                        std::shared_ptr<File>>;  // by device and inode
  std::shared_ptr<File> file_of(pid_t tgid, const symbols::Mapping& mapping);
  std::shared_ptr<File> vdso_of(pid_t tgid, const symbols::Mapping& mapping);
  std::shared_ptr<Run> run_of(const std::vector<Part>& parts);
  bool tell(std::uint64_t program, const Run& run);
  void forget_ended();
  void retire_runs(Clock::time_point now);
  void make_room_from_unused(Clock::time_point now);

  Maps maps_;
  Tables& tables_;
  std::string proc_root_;
  Extents room_{UNWIND_MAPPINGS};
  std::unordered_map<pid_t, Process> processes_;
  std::map<std::uint64_t, std::vector<std::shared_ptr<Run>>> runs_;  // by a hash of their mappings
  std::vector<Retired> retired_;
  std::set<std::uint64_t> strangers_;  // entries of processes that we do not know
  std::set<std::string> told_;         // files without room
  Clock::time_point next_sweep_{}, next_turn_{};
};

}  // namespace coretap::unwind
