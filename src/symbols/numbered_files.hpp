// Files that BPF programs identify by numbers: a frame in one of them has the same meaning in all
// processes, also after their exit (STACK_IN_FILE in bpf/lib/core/shared.h).
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
  std::string path;        ///< path in a process that has mapped it; "[vdso]"
  std::uint64_t base = 0;  ///< the ELF address that offsets are relative to
  std::string image;       ///< contents of the vdso, which is not a file
  pid_t mapped_by = 0;     ///< the last process known to have mapped it
  Fd handle;               ///< O_PATH; kept if the file may soon be removed
};

class NumberedFiles {
 public:
  /// Further files get no numbers: their frames stay addresses.
  static constexpr std::size_t kMost = 1 << 14;
  /// Handles of files that may be gone when symbols are needed: all but files whose path leads to a
  /// system directory here. Each keeps its file system busy, so the oldest are closed.
  static constexpr std::size_t kMostHandles = 256;

  explicit NumberedFiles(std::string proc_root = "/proc") : proc_root_(std::move(proc_root)) {}

  /// Starts at 1, always the same for a file; 0: no more numbers. The caller keeps `handle`.
  std::uint16_t number(const FileIdentity& id, const std::string& path, std::uint64_t base,
                       const Fd& handle, pid_t mapped_by);
  std::uint16_t number_of_vdso(std::string image, std::uint64_t base);
  const NumberedFile* find(std::uint64_t number) const;
  /// Opens it for reading, by its handle, or by its path here or in a process that has it; none:
  /// unreachable.
  /// `tgid`: a process that is known to have had it.
  Fd open(const NumberedFile& file, pid_t tgid) const;
  std::size_t size() const { return files_.size(); }

 private:
  std::uint16_t add(NumberedFile file);
  void keep(std::uint16_t number, const Fd& handle);

  std::string proc_root_;
  std::deque<NumberedFile> files_;
  std::unordered_map<FileIdentity, std::uint16_t, FileIdentityHash> numbers_;
  std::deque<std::uint16_t> kept_;  // oldest first
};

}  // namespace coretap::symbols
