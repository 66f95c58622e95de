// The executable mappings of a process, from /proc/PID/maps.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coretap::symbols {

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;     // exclusive
  std::uint64_t offset = 0;  // in the file, bytes
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;  // 0: no file
  bool executable = false;
  bool deleted = false;   // the file was deleted; " (deleted)" is not part of `path`
  bool path_cut = false;  // `path` was too long and cannot be used to open the file
  std::string path;       // a file, "[stack]", "//anon"...; empty: anonymous memory

  /// Backed by a file that may contain symbols (also a memfd).
  bool has_file() const;
  bool same_file(const Mapping& other) const;

  /// The mapping under which /proc/PID/map_files lists the file: this one, or a neighbour (below).
  std::uint64_t file_start = 0, file_end = 0;
};

/// Parses a line without its newline. nullopt if it is damaged.
std::optional<Mapping> parse_mapping(std::string_view line);

struct MapsContent {
  std::vector<Mapping> executable;  // sorted, disjoint
  std::size_t lines = 0;
  std::size_t damaged = 0;  // lines that could not be parsed
};

/// Reads an open maps file to its end. Anonymous memory in place of a file's code is reported as
/// that file's: some programs copy their code to huge pages.
MapsContent read_mappings(int fd);
/// The same for a process; nothing if it has ended, or its file cannot be opened.
MapsContent read_mappings(const std::string& proc_root, pid_t tgid);
/// Memory of a process: fewer bytes, or none, if it cannot be read.
std::string read_memory(const std::string& proc_root, pid_t tgid, std::uint64_t start,
                        std::uint64_t size);

/// Start time of a process, in clock ticks after boot: detects reuse of process ids. 0: exited.
std::uint64_t process_started(const std::string& proc_root, pid_t tgid);

/// Start of the stack of the program that it runs, which exec changes. 0: not known, for example
/// without the right to ptrace it.
std::uint64_t process_stack_begin(const std::string& proc_root, pid_t tgid);

}  // namespace coretap::symbols
