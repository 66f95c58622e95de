// Addresses to names: symbols of the kernel and of user processes. Everything read
// here (ELF files, maps, perf maps) may be hostile and is bounded and validated.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coretap/result.hpp"
#include "lib/core/shared.h"

namespace coretap {

namespace symbols {
class NumberedFiles;

struct SourceFrame {
  std::string function = {};  ///< as the linker has it, else as in the source; empty: unknown
  std::string file = {};      ///< with its directory; empty: unknown
  std::uint32_t line = 0;     ///< 0: unknown
  bool inlined = false;       ///< part of the next frame's function
};
}  // namespace symbols

/// A file whose code runs in processes.
struct CodeFile {
  struct Segment {
    std::uint64_t offset, size;  ///< in the file
  };
  std::string path;               ///< as named by a process that has mapped it; "[vdso]"
  std::string build_id;           ///< lower-case hexadecimal; empty: none
  std::vector<Segment> segments;  ///< those with code; empty: unreadable
  bool program = false;           ///< an executable rather than a shared library
};

/// The result for one address. All text comes from outside
/// (files, processes): sanitise it before it reaches a terminal.
struct Symbol {
  std::string name;    ///< demangled; empty = unknown (callers print "[unknown]")
  std::string module;  ///< "kernel", a kernel module ("ext4"), a file's path, "[vdso]", "[anon]";
                       ///< empty = no executable mapping holds the address
  std::uint64_t offset = 0;         ///< bytes from the start of the symbol; 0 if unknown
  std::uint64_t module_offset = 0;  ///< ELF virtual address in a file or the vdso (as addr2line and
                                    ///< objdump use it), or the offset in the file if that cannot
                                    ///< be read; bytes from the mapping's start in other memory;
                                    ///< always 0 for the kernel
  std::string linkage_name;         ///< name for the linker; empty: same as `name`
  std::shared_ptr<const CodeFile> file;  ///< null: not in a file, or in the kernel
  /// Offset in that file of the address looked up; empty if the file cannot be read.
  std::optional<std::uint64_t> file_offset;
  bool entry = false;        ///< start of a program or thread: a stack that ends here is complete
  bool compiled = false;     ///< code that a runtime compiles into memory (JIT)
  bool interpreted = false;  ///< code of a scripting language
  std::string source;        ///< its file; empty: unknown
  std::uint32_t line = 0;    ///< in that file; 0: unknown
  /// Of a runtime's compiled code: functions whose code is part of it, innermost first.
  std::vector<symbols::SourceFrame> inlined = {};

  bool known() const { return !name.empty(); }
};

/// The running kernel's functions, from /proc/kallsyms, opened at once (whether it shows
/// addresses is decided then, so CAP_SYSLOG can be dropped) and read once when first needed.
/// Only code is kept (types t, T, w, W; modules, ftrace and BPF programs included), about 45
/// bytes per function. Code loaded after the first use stays unknown. Not thread-safe.
class KernelSymbols {
 public:
  explicit KernelSymbols(std::string path = "/proc/kallsyms");
  ~KernelSymbols();
  KernelSymbols(KernelSymbols&&) noexcept;
  KernelSymbols& operator=(KernelSymbols&&) noexcept;

  /// The function at `address`; loads if needed. Of several names for one address, global ones
  /// are preferred and decoys (__pfx_, __cfi_) come last. Unknown if the symbols cannot be
  /// loaded, if data is between function and address, or more than 16 MiB after any function.
  Symbol find(std::uint64_t address);

  /// Reads the file unless already done. Fails (status 3) if it cannot be read or
  /// shows only zeros (kptr_restrict); the failure is kept and returned again.
  Result<void> load();

  /// Number of functions; 0 before load().
  std::size_t size() const;

 private:
  Result<void> read_once();
  Symbol look_up(std::uint64_t address);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Why the kernel hides its addresses from this process; empty: /proc/kallsyms shows them.
std::optional<Error> kernel_addresses_hidden(const std::string& path = "/proc/kallsyms");

/// Address of the first symbol of this name; empty: not found, or addresses are hidden.
std::optional<std::uint64_t> kernel_address(std::string_view name,
                                            const std::string& path = "/proc/kallsyms");

/// Kernel code of interrupt entry and softirq handling: frames beyond it in a
/// stack do not belong to the running task. Ranges [begin, end); 0: not known.
struct InterruptCode {
  std::uint64_t irq_begin = 0, irq_end = 0, softirq_begin = 0, softirq_end = 0;
};
/// Stops reading as soon as possible.
InterruptCode interrupt_code(const std::string& path = "/proc/kallsyms");

/// The kernel's locking code: a lock's caller is the first
/// frame after it. Ranges [begin, end), 0: not known.
struct LockCode {
  code_range sched = {}, spin = {},
             mmap = {};  ///< sleeping locks, spinning locks, tracepoints of mmap_lock
};
LockCode lock_code(const std::string& path = "/proc/kallsyms");

struct UserSymbolOptions {
  bool demangle = true;             ///< C++ and legacy Rust names in source form
  std::string proc_root = "/proc";  ///< mount point of procfs (another one in tests)
  /// Separate debug files, searched first in the target's root directory, then in ours.
  std::string debug_root = "/usr/lib/debug";
  std::size_t max_processes = 4096;   ///< cached maps; least recently used evicted first
  std::size_t max_files = 64;         ///< cached symbol tables; least recently used evicted first
  std::size_t max_bytes = 256 << 20;  ///< limit for all symbol tables, and another for all JIT maps
  /// Minimum time between two readings of a process's
  /// maps or JIT map for unknown addresses.
  std::chrono::milliseconds refresh_interval{1000};
  /// CPU time for reading the files of one user's processes; a tenth of the elapsed time
  /// is added: a process that maps thousands of large files must not block the reader.
  std::chrono::milliseconds reading_time{10'000};
};

/// Symbols of user processes: ELF files (.symtab, .dynsym, .gnu_debugdata, separate debug
/// files by build-id or debuglink), the vdso, and JIT code by /tmp/perf-PID.map.
///
/// Files are opened by /proc/PID/map_files, so that deleted files and those of other
/// mount namespaces resolve; else by path in the process's root; after its exit by path
/// on the host; by path only if device and inode are those that were mapped. Only regular
/// files are ever opened. A file system that hangs (dead NFS, FUSE) hangs find().
///
/// Symbol tables are shared between processes by (device, inode, size, modification
/// time); no file stays open. Reading one temporarily takes as much memory as its symbol
/// sections (at most 256 MiB each).
/// Not thread-safe.
class UserSymbols {
 public:
  explicit UserSymbols(UserSymbolOptions options = {});
  ~UserSymbols();
  UserSymbols(UserSymbols&&) noexcept;
  UserSymbols& operator=(UserSymbols&&) noexcept;

  /// Snapshots /proc/TGID/maps now, as the process may have exited when symbols are
  /// needed. If it has exited already, an earlier snapshot is kept. Costs one read and
  /// one stat per executable mapping: call it once per process (and exec), not per event.
  /// `forked_from`: its parent, if it still runs the parent's program (0: it does not);
  /// if the process exited before it was read, the parent's mappings are used for it.
  /// `image`: after exec, or when it maps other files, a process has other code at the
  /// same addresses; the caller numbers these images. Earlier mappings under the same
  /// number stay known where nothing else is mapped now.
  /// `stack_begin`: identifies the program (mm_struct.start_stack; 0: not known). If the
  /// process runs another one by now, its mappings are not used for this image.
  void remember(pid_t tgid, pid_t forked_from = 0, std::uint32_t image = 0,
                std::uint64_t stack_begin = 0);

  /// The function of process `tgid` at `address`. `exact_ip` is true for an
  /// instruction pointer; false for a return address, which may be after the end
  /// of the caller: the byte before is looked up, but offsets still refer to
  /// `address`. Never fails: members that cannot be determined are empty.
  /// For an image without a snapshot nothing is found, if another image has one.
  Symbol find(pid_t tgid, std::uint64_t address, bool exact_ip, std::uint32_t image = 0);

  /// The function at a location in a numbered file (src/symbols/numbered_files.hpp): `frame`
  /// is a frame with STACK_IN_FILE. `tgid`: a process that has had it mapped, alive or not.
  Symbol find_in_file(const symbols::NumberedFiles& files, std::uint64_t frame, pid_t tgid,
                      bool exact_ip);

  /// Users whose files exceeded `reading_time` since the last
  /// call, so that their functions have no names; each user once.
  std::vector<uid_t> take_given_up();

  /// Drops the snapshots and JIT symbols of this process.
  void forget(pid_t tgid);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coretap
