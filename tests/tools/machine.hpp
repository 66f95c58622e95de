// Properties of this machine, and temporary changes to it.
#pragma once
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process.hpp"

namespace coretap::tooltest {

#ifdef __aarch64__
inline constexpr bool kArm64 = true;
#else
inline constexpr bool kArm64 = false;
#endif

/// Slowness relative to a usual machine; at least 1.
double slowness();
/// Timeout of actions that must be immediate on this machine; a hang costs no more.
std::chrono::milliseconds soon();
/// After SIGINT, while others detach, too: mostly grace periods, which emulation hardly lengthens.
std::chrono::milliseconds ends_within();

/// Programs can make the system calls of 32-bit ones, and those run: kernels can be built or
/// started without (CONFIG_IA32_EMULATION, ia32_emulation=0). True on arm64.
bool has_32_bit_calls();

/// Removed with its contents when this object is destroyed.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A new cgroup (version 2), removed when this object is destroyed.
class Cgroup {
 public:
  /// `suffix`: the end of its name.
  explicit Cgroup(const std::string& suffix = {});
  ~Cgroup();
  const std::string& path() const { return path_; }
  void add(pid_t pid) const;

 private:
  std::string path_, mounted_;
};

/// By its version; an unknown one is a newer kernel.
bool kernel_before(int major, int minor);

/// A kernel file system mounted in a new directory.
class Mounted {
 public:
  explicit Mounted(const char* type, const char* options = nullptr);
  ~Mounted();
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The kernel's own trace of one event ("kmem/mm_page_alloc_extfrag") or several, in a separate
/// instance.
class Trace {
 public:
  struct Event {
    std::uint64_t ns = 0;  ///< by a clock that only the trace uses; in microseconds
    int cpu = 0;
    pid_t task = 0;
    std::string name, words;  ///< "irq_handler_exit", "irq=24 ret=handled"

    /// The text after "KEY=", up to a blank or comma; empty: no such key.
    std::string value(const std::string& key) const;
  };

  /// Events that this kernel does not have are ignored.
  explicit Trace(Strings events);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void stop() const { turn("0"); }
  /// Of one task, or of all, by time.
  std::vector<Event> events(std::optional<pid_t> task = {}) const;
  /// The same as lines, from the event's name on.
  Strings lines(std::optional<pid_t> task = {}) const;

 private:
  void turn(const char* value) const;
  /// Throws if events were overwritten by later ones.
  void expect_whole() const;

  Mounted tracefs_{"tracefs"};
  Strings events_;
  std::string instance_;
};

/// Some kernels do not report the switch from a thread of process 1 to the next task, neither to
/// BPF nor in their own trace (seen on 6.18 of a microVM, whose process 1 is its agent).
class Unreported {
 public:
  Unreported();
  /// Number of such switches since construction; 0 if the kernel's own trace has them.
  std::uint64_t switches() const;

 private:
  std::uint64_t before_;
};

/// Growth of the counters in a file of "KEY VALUE" lines, such as /proc/vmstat.
class Counters {
 public:
  explicit Counters(std::string path = "/proc/vmstat");
  /// Since construction; a key that ends in '*' is a sum.
  std::uint64_t growth(std::string_view key) const;

 private:
  std::uint64_t sum(const std::string& text, std::string_view key) const;
  std::string path_, before_;
};

/// The columns of /proc/diskstats after a disk's name; 0 for those this kernel lacks. None: no such
/// disk.
using DiskNumbers = std::array<std::uint64_t, 17>;
std::optional<DiskNumbers> diskstats(const std::string& disk);

/// The readable part of a file; for a file of a process, which may end meanwhile.
std::string slurp(const std::string& path);

/// Whether this machine is a guest of scripts/vm, which tests may change.
bool in_guest();
/// Replaces the content of a file of /proc or /sys while the object exists. For guests.
class Setting {
 public:
  Setting(std::string path, const std::string& value);
  ~Setting() { set(was_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  bool set(const std::string& value) const;

 private:
  std::string path_, was_;
};

/// Ids of the BPF programs, links and maps that a process holds.
struct BpfIds {
  std::vector<std::uint32_t> programs, links, maps;
  std::size_t size() const { return programs.size() + links.size() + maps.size(); }
};
BpfIds bpf_ids(pid_t pid);
/// Those that still exist after at most the time that the kernel needs to free them.
Strings bpf_left(const BpfIds& ids);

/// Asked of the kernel without coretap's code.
bool has_hardware_counters();

}  // namespace coretap::tooltest
