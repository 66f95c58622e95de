// Files that kernel programs know by numbers: a frame in one of them means the same in all
// processes, and after their end (STACK_IN_FILE in bpf/lib/shared.h).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "symbols/process_files.hpp"

namespace coretap::symbols {

struct NumberedFile {
  FileIdentity id;
  std::string path;        ///< as a process that has mapped it names it; "[vdso]"
  std::uint64_t base = 0;  ///< the ELF address that places in it count from
  std::string image;       ///< of the vdso, which is no file
  pid_t mapped_by = 0;     ///< the last process that is known to have it
  Fd handle;               ///< without access; kept where it may soon be gone
};

class NumberedFiles {
 public:
  /// Later ones have no numbers: their frames stay addresses.
  static constexpr std::size_t kMost = 1 << 14;
  /// Handles of files that may be gone when names are looked for: all but those whose path leads to
  /// a system directory of ours. Each keeps its file system busy, so the oldest ones go.
  static constexpr std::size_t kMostHandles = 256;

  explicit NumberedFiles(std::string proc_root = "/proc") : proc_root_(std::move(proc_root)) {}

  /// From 1 on, always the same for one file; 0: there are no more. `handle` stays the caller's.
  std::uint16_t number(const FileIdentity& id, const std::string& path, std::uint64_t base,
                       const Fd& handle, pid_t mapped_by);
  std::uint16_t number_of_vdso(std::string image, std::uint64_t base);
  const NumberedFile* find(std::uint64_t number) const;
  /// For reading, by its handle, or by its path here or in a process that has it; none: it cannot
  /// be reached.
  /// `tgid`: a process that is known to have had it.
  Fd open(const NumberedFile& file, pid_t tgid) const;
  std::size_t size() const { return files_.size(); }

 private:
  std::uint16_t add(NumberedFile file);
  void keep(std::uint16_t number, const Fd& handle);

  std::string proc_root_;
  std::deque<NumberedFile> files_;
  std::unordered_map<FileIdentity, std::uint16_t, FileIdentityHash> numbers_;
  std::deque<std::uint16_t> kept_;  // the oldest first
};

}  // namespace coretap::symbols
