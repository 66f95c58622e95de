// V8 (Node.js) in an ELF file: where its objects have their fields; and the lines of its functions.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/stack/runtime.h"
#include "runtimes/read_budget.hpp"

namespace coretap::runtimes {

constexpr std::string_view kV8Mark = "v8dbg_off_fp_function";

/// Nothing if the file does not contain V8 (the program, or libnode). Offsets and numbers of types
/// come from the file's constants for debuggers (v8dbg_*, tools/gen-postmortem-metadata.py in its
/// sources); a table of ours has what these lack, for the versions in which it was proven. Any
/// other version has v8_layout::known 0.
std::optional<runtime_file> v8_in(int fd);

/// Reads memory of a process; false: not all of it could be read.
using ReadMemory = std::function<bool(pid_t, std::uint64_t address, std::span<char> to)>;

/// The lines at which functions start, from sources that the kernel program has sent, or in the
/// memory of their processes: these are read once each. Untrusted input.
class SourceLines {
 public:
  /// Longer sources are not read.
  static constexpr std::size_t kMostSource = 8 << 20;
  /// Bytes that are read at once, and in each second: a process could show ever new sources.
  static constexpr std::size_t kMostRead = 4 * kMostSource;
  /// Line starts of sources; above, those not used for longest are dropped.
  static constexpr std::size_t kMostLines = 1 << 20;

  /// `read`: null: only sources that were sent.
  explicit SourceLines(ReadMemory read) : read_(std::move(read)) {}
  /// From 1 on; 0: not known. `sent`: the part of the source before the function; empty: none.
  std::uint32_t line_of(pid_t pid, const runtime_source& source, std::string_view sent);

 private:
  struct Source {
    pid_t pid;
    std::uint64_t script, object, id;
    std::vector<std::uint32_t> ends;  // positions behind the ends of lines
  };
  bool is_there(pid_t pid, const runtime_source& source) const;
  const Source* find(pid_t pid, const runtime_source& source);

  ReadMemory read_;
  std::list<Source> sources_;  // the last used first
  std::size_t lines_ = 0;
  ReadBudget budget_{kMostRead};
};

}  // namespace coretap::runtimes
