// Functions, files and lines of addresses from DWARF (versions 2 to 5), with the functions that the
// compiler inlined there. One unit at a time is in memory, and only those that have a wanted
// address are read as a whole.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/symbols.hpp"

namespace coretap::symbols {

struct SourcePlace {
  std::vector<SourceFrame> frames = {};  ///< innermost first
  std::string_view why = {};  ///< why there are none, or functions are missing; empty: all is known
};

class SourceLines {
 public:
  /// The open file is used until this object ends. `most_unpacked`: bytes of its compressed
  /// sections, which are kept in memory.
  explicit SourceLines(int fd, std::uint64_t most_unpacked = 1ULL << 30);
  ~SourceLines();
  SourceLines(SourceLines&&) noexcept;
  SourceLines& operator=(SourceLines&&) noexcept;

  /// Empty: the file has debug information.
  std::string_view why_not() const;
  /// `addresses`: of the file, sorted. The answers have the same order. Each unit is read once, so
  /// one call for all addresses is fastest. Damaged files yield their readable part. After
  /// `most_time` of CPU time the rest stays unknown.
  std::vector<SourcePlace> find(std::span<const std::uint64_t> addresses,
                                std::chrono::milliseconds most_time = std::chrono::seconds(60));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A file with debug information.
struct DebugFile {
  Fd fd = {};
  std::string path = {};
};
/// The one of the file `fd` at `path`: by its build id in one of the directories, by its debug
/// link, or the file itself. No `fd` in it: there is none.
DebugFile find_debug_file(int fd, const std::string& path,
                          std::span<const std::string> debug_roots);

}  // namespace coretap::symbols
