// Locates functions of programs and libraries: finds the files that running processes have mapped,
// or that are installed, and the places in them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "symbols/code_place.hpp"

namespace coretap {

class Kernel;

/// One place of a probe. The file stays open: the kernel gets its descriptor, so that it probes
/// exactly the file that was read, even if its name now refers to another one.
struct ProbePoint {
  std::shared_ptr<Fd> file;
  std::string path;  ///< the name in its processes or in this system: for display, not to be opened
  std::string symbol;
  std::uint64_t offset = 0;         ///< of the function, in the file
  symbols::EntryPlace probed = {};  ///< the instruction that is probed at its entry
  /// Return instructions, for programs at returns; empty: the kernel's return probe.
  std::vector<std::uint64_t> returns = {};

  std::string open_path() const;
};

struct ProbePoints {
  std::vector<ProbePoint> points;
  std::vector<std::string> left_out;  ///< files of that name that are not probed, and why
};

/// The parts of "libc.so.6:getaddrinfo".
struct ProbeTarget {
  std::string_view library, symbol;
};
ProbeTarget split_target(std::string_view target);

/// All executable files that the processes of --pid have mapped.
inline constexpr std::string_view kAnyFile = "*";

/// True if this file name matches the library. A name with ".so" also matches its versions, "libc"
/// matches any C library, every other name matches a program.
bool is_library(std::string_view file_name, std::string_view library);

/// The names that a word for a library or program may stand for, in order of preference: "ssl" for
/// libssl.so and a program ssl, an empty word for any file.
std::vector<std::string> files_by_name(std::string_view word);

class ProbeFinder {
 public:
  /// `proc` and `directories` (of libraries): other directories in tests.
  explicit ProbeFinder(const Config& config, std::string proc = "/proc",
                       std::vector<std::string> directories = {});

  /// With --library only that file. With --pid the files that these processes have mapped; without
  /// any, for a library the program of each process, for a program the installed one. Otherwise
  /// the files of the system and of all running processes.
  /// The function's name gets the prefix of --symbols-prefix.
  Result<ProbePoints> find(std::string_view library, std::string_view function);

  struct File {
    std::shared_ptr<Fd> fd;
    std::string path;
  };
  struct Files {
    std::vector<File> files;
    std::vector<std::string> left_out;
    std::vector<std::string> unreadable;  ///< processes
    std::size_t beyond = 0;               ///< mappings of files above the limit
  };
  /// Only the files. `library` may be a path, or kAnyFile. `typed`: the user gave the name, so
  /// that a process that has no such library has to be a program of this name.
  const Result<Files>& files(std::string_view library, bool typed = false);
  /// Names that select the files of --pid: "ssl" for libssl.so.3.
  std::vector<std::string> names_of_processes();

 private:
  Result<Files> look_up(std::string_view library, bool typed);
  /// True if the process' program has that name, or all libraries within it.
  bool is_program(std::uint32_t pid, std::string_view library) const;
  /// True if the process has mapped a file of that name.
  bool add_mapped(std::string_view pid, std::string_view library, Files& files);
  void add_program(std::uint32_t pid, Files& files);
  void add_installed(std::string_view library, Files& files);
  void add_command(Files& files);
  void add(Fd handle, std::string path, Files& files);

  const Config& config_;
  std::string proc_;
  std::vector<std::string> directories_;
  std::vector<File> opened_;
  std::map<std::string, Result<Files>, std::less<>> known_;
};

/// An error: this kernel has none (kUnsupported), or that could not be read.
Result<void> uprobes_work();
/// True if this kernel can attach to all places in a file with one link. Unlike a perf event for
/// each place, that needs no CAP_SYS_ADMIN and detaches much faster; a hit costs the same.
bool probes_by_file(Kernel& kernel);

}  // namespace coretap
