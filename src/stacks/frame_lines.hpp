// Source lines of frames, and the functions that the compiler inlined there (--lines).
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/symbols.hpp"
#include "symbols/source_lines.hpp"

namespace coretap {

/// Files are matched by build id alone. Each is read when a frame first needs it; a few stay open.
class FrameLines {
 public:
  /// Reads what identifies the kernel now, while this process has its capabilities.
  FrameLines();

  /// The frames at a place, innermost first; the last one is not inlined. Empty: unknown.
  using Found = std::vector<symbols::SourceFrame>;
  struct Frame {
    const Symbol* symbol;
    bool exact;  ///< an instruction, not a return address
  };
  /// Of one stack, in its order. `tgid`: a process that has its files.
  std::vector<Found> user(pid_t tgid, std::span<const Frame> frames);
  /// `address`: in the running kernel.
  std::vector<Found> kernel(std::span<const std::uint64_t> addresses);

  /// True once if files took too long to read, so that the rest of the frames has no lines.
  bool take_given_up();

 private:
  struct File {
    symbols::DebugFile debug;
    std::optional<symbols::SourceLines> lines;  ///< nullopt: not open
    bool none = false;                          ///< there is no debug information
    std::map<std::uint64_t, Found> known;       ///< by address in the file
    std::uint64_t used = 0;
  };
  struct Candidate {
    Fd handle = {};
    std::string path = {};
  };
  using Candidates = std::function<std::vector<Candidate>()>;
  File& file(const std::string& build_id, const Candidates& candidates);
  void find(File& file, std::vector<std::uint64_t> addresses);

  std::map<std::string, File> files_;  ///< by build id
  std::uint64_t clock_ = 0;
  std::chrono::nanoseconds left_;  ///< CPU time
  bool given_up_ = false, told_ = false;
  std::string kernel_id_;
  std::optional<std::uint64_t> kernel_text_;  ///< where the running kernel has its code
  std::uint64_t kernel_moved_ = 0;            ///< from its file
};

/// "function (file.c:12)" from "function"; without a line the word stays as it is.
void add_line(std::string& word, const symbols::SourceFrame& source);

}  // namespace coretap
