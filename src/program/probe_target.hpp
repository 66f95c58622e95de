// Where functions of programs and libraries lie: the files that running processes have mapped, or
// would be given by this system, and the places in them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "cli/config.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// One place of a probe. The file stays open: the kernel gets its descriptor, so that it probes
/// the very file that was read, whatever its name leads to by now.
struct ProbePoint {
  std::shared_ptr<Fd> file;
  std::string path;  ///< as its processes or the system name it: to be shown, not to be opened
  std::string symbol;
  std::uint64_t offset = 0;  ///< in the file
  /// Return instructions, for programs at returns; none: the kernel's return probe.
  std::vector<std::uint64_t> returns = {};

  std::string open_path() const;
};

struct ProbePoints {
  std::vector<ProbePoint> points;
  std::vector<std::string> left_out;  ///< files of that name which are not probed, and why
};

/// "libc.so.6:getaddrinfo" in its parts.
struct ProbeTarget {
  std::string_view library, symbol;
};
ProbeTarget split_target(std::string_view target);

/// All files of code that the processes of --pid have mapped.
inline constexpr std::string_view kAnyFile = "*";

/// Is a file of this name the one in question? A name with ".so" also stands for its versions,
/// "libc" for the C library of any kind, every other name for a program.
bool is_library(std::string_view file_name, std::string_view library);

/// What a word for a library or program may stand for, to be tried in this order: "ssl" for
/// libssl.so and a program ssl, nothing for any file.
std::vector<std::string> files_by_name(std::string_view word);

class ProbeFinder {
 public:
  /// `proc` and `directories` (of libraries) are others in tests.
  explicit ProbeFinder(const Config& config, std::string proc = "/proc",
                       std::vector<std::string> directories = {});

  /// With --library that file only; with --pid those that these processes have mapped, else (of
  /// a library) the process' own program or (of a program) the installed one; otherwise those of
  /// the system and of all running processes.
  /// The function's name follows --symbols-prefix.
  Result<ProbePoints> find(std::string_view library, std::string_view function);

  struct File {
    std::shared_ptr<Fd> fd;
    std::string path;
  };
  struct Files {
    std::vector<File> files;
    std::vector<std::string> left_out;
    std::size_t unreadable = 0;  ///< processes
    std::size_t beyond = 0;      ///< mappings of more files than can be probed
  };
  /// The files alone. `library` may be a path, or kAnyFile.
  const Result<Files>& files(std::string_view library);

 private:
  Result<Files> look_up(std::string_view library);
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

/// Empty: this kernel has uprobes.
std::string uprobe_refusal();

}  // namespace coretap
