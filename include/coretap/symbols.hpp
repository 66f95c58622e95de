// Addresses to names: the kernel's own symbols and those of user processes.
// Everything read here (ELF files, maps, perf maps) may be hostile and is bounded and validated.
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
#include "lib/shared.h"

namespace coretap {

namespace symbols {
class NumberedFiles;
}

/// A file whose code processes run.
struct CodeFile {
  struct Segment {
    std::uint64_t offset, size;  ///< in the file
  };
  std::string path;               ///< as a process that has mapped it names it; "[vdso]"
  std::string build_id;           ///< lower-case hexadecimal; empty: it has none
  std::vector<Segment> segments;  ///< those with code; empty: it cannot be read
};

/// What is known about one address. All text comes from outside (files, processes): sanitise it
/// before it reaches a terminal.
struct Symbol {
  std::string name;    ///< demangled; empty = unknown (callers print "[unknown]")
  std::string module;  ///< "kernel", a kernel module ("ext4"), a file's path, "[vdso]", "[anon]";
                       ///< empty = no executable mapping holds the address
  std::uint64_t offset = 0;         ///< bytes from the start of the symbol; 0 if unknown
  std::uint64_t module_offset = 0;  ///< ELF virtual address in a file or the vdso (as addr2line and
                                    ///< objdump use it), or the offset in the file if that cannot
                                    ///< be read; bytes from the mapping's start in other memory;
                                    ///< always 0 for the kernel
  std::string linkage_name;         ///< as the linker knows it; empty: `name` is that
  std::shared_ptr<const CodeFile> file;  ///< null: in none, or the kernel's
  /// In that file, of the place that was looked up; nothing if the file cannot be read.
  std::optional<std::uint64_t> file_offset;
  bool entry = false;  ///< where a program or a thread begins: a stack that ends here is whole

  bool known() const { return !name.empty(); }
};

/// The running kernel's functions, from /proc/kallsyms, opened at once (whether it shows addresses
/// is decided then, so CAP_SYSLOG can be given up) and read once when first needed.
/// Only code is kept (types t, T, w, W; modules, ftrace and BPF programs included), about 45 bytes
/// per function. Code loaded later than the first use stays unknown. Not thread-safe.
class KernelSymbols {
 public:
  explicit KernelSymbols(std::string path = "/proc/kallsyms");
  ~KernelSymbols();
  KernelSymbols(KernelSymbols&&) noexcept;
  KernelSymbols& operator=(KernelSymbols&&) noexcept;

  /// The function that holds `address`; loads if need be. Of several names for one address it takes
  /// global ones first and decoys (__pfx_, __cfi_) last. Unknown if the symbols cannot be loaded,
  /// if data begins between the function and the address, or more than 16 MiB behind any function.
  Symbol find(std::uint64_t address);

  /// Reads the file unless that was done before. Fails (status 3) if it cannot be read or shows
  /// only zeros (kptr_restrict); the failure is kept and returned again.
  Result<void> load();

  /// Functions known; 0 before load().
  std::size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Why the kernel does not show its addresses to this process; none: /proc/kallsyms shows them.
std::optional<Error> kernel_addresses_hidden(const std::string& path = "/proc/kallsyms");

/// Of the first symbol of this name; none: there is none, or addresses are not shown.
std::optional<std::uint64_t> kernel_address(std::string_view name,
                                            const std::string& path = "/proc/kallsyms");

/// Where the kernel's code that enters interrupts and that serves softirqs lies: a stack that
/// passes there is not the running task's doing. Ranges [begin, end); 0: not known.
struct InterruptCode {
  std::uint64_t irq_begin = 0, irq_end = 0, softirq_begin = 0, softirq_end = 0;
};
/// Reads no further than it must.
InterruptCode interrupt_code(const std::string& path = "/proc/kallsyms");

/// Where the kernel's code of locks lies: a caller of a lock is the first frame behind it. Ranges
/// [begin, end), 0: not known.
struct LockCode {
  code_range sched = {}, spin = {},
             mmap = {};  ///< of locks that sleep, of those that spin, of mmap_lock's tracepoints
};
LockCode lock_code(const std::string& path = "/proc/kallsyms");

struct UserSymbolOptions {
  bool demangle = true;             ///< C++ and legacy Rust names as their authors wrote them
  std::string proc_root = "/proc";  ///< where the procfs is (another one in tests)
  /// Separate debug files, looked for in the target's root directory, then in our own.
  std::string debug_root = "/usr/lib/debug";
  std::size_t max_processes = 4096;   ///< remembered maps; the least recently used go first
  std::size_t max_files = 64;         ///< symbol tables held; the least recently used go first
  std::size_t max_bytes = 256 << 20;  ///< memory of all symbol tables, and of all JIT maps, each
  /// Shortest time between two readings of the same process' maps or JIT map that an unknown
  /// address may cause.
  std::chrono::milliseconds refresh_interval{1000};
  /// CPU time that may go into reading the files of one user's processes, and a tenth of the time
  /// that passes besides: a process that maps thousands of large ones must not hold the reader.
  std::chrono::milliseconds reading_time{10'000};
};

/// Symbols of user processes: ELF files (.symtab, .dynsym, .gnu_debugdata, separate debug files by
/// build-id or debuglink), the vdso, and JIT code by /tmp/perf-PID.map.
///
/// Files are opened by /proc/PID/map_files, so that deleted files and those of other mount
/// namespaces resolve; else by path inside the process' root; after its exit by path on the host;
/// by path only if device and inode are those that were mapped. Only regular files are ever opened.
/// A file system that hangs (dead NFS, FUSE) hangs find().
///
/// Symbol tables are shared between processes by (device, inode, size, modification time); no
/// file stays open. Reading one takes as much memory as its symbol sections (at most 256 MiB each)
/// for that moment.
/// Not thread-safe.
class UserSymbols {
 public:
  explicit UserSymbols(UserSymbolOptions options = {});
  ~UserSymbols();
  UserSymbols(UserSymbols&&) noexcept;
  UserSymbols& operator=(UserSymbols&&) noexcept;

  /// Snapshots /proc/TGID/maps now, as the process may be gone when symbols are asked for.
  /// If it is gone already, an earlier snapshot stays. Costs one read and one stat per executable
  /// mapping: call it once per process (and exec), not per event.
  /// `forked_from`: its parent, if it runs the parent's program still (0: it does not); where the
  /// process is gone before it could be looked at, the parent's mappings stand for its own.
  /// `image`: by its exec and by mapping other files a process comes by other code at the same
  /// addresses; the caller tells each by a number. What was mapped earlier under the same number
  /// is still known where nothing else is mapped now.
  /// `stack_begin`: of the program that is meant (mm_struct.start_stack; 0: not known). Where the
  /// process runs another one by now, nothing of that is taken for this image's.
  void remember(pid_t tgid, pid_t forked_from = 0, std::uint32_t image = 0,
                std::uint64_t stack_begin = 0);

  /// The function of process `tgid` that holds `address`. `exact_ip` is true for an instruction
  /// pointer; false for a return address, which may lie behind the end of the caller: the byte
  /// before is looked up, while offsets still tell of `address`. Never fails: what cannot be found
  /// stays empty.
  /// Of an image that was not remembered nothing is found, if another one was.
  Symbol find(pid_t tgid, std::uint64_t address, bool exact_ip, std::uint32_t image = 0);

  /// The function at a place of a file that has a number (src/symbols/numbered_files.hpp): `frame`
  /// is a frame with STACK_IN_FILE. `tgid`: a process that has had it, alive or not.
  Symbol find_in_file(const symbols::NumberedFiles& files, std::uint64_t frame, pid_t tgid,
                      bool exact_ip);

  /// Users whose files began to take more than `reading_time` since the last call, so that their
  /// functions have no names; each user once.
  std::vector<uid_t> take_given_up();

  /// Drops the snapshots and JIT symbols of this process.
  void forget(pid_t tgid);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coretap
