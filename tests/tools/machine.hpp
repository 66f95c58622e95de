// Facts of this machine, and places of it that are ours for a while.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process.hpp"

namespace coretap::tooltest {

/// How much slower than a usual machine this one is; at least 1.
double slowness();

/// Gone with this object, and all that is in it.
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

/// A cgroup (version 2) of our own, gone with this object.
class Cgroup {
 public:
  /// `suffix`: what its name ends in.
  explicit Cgroup(const std::string& suffix = {});
  ~Cgroup();
  const std::string& path() const { return path_; }
  void add(pid_t pid) const;

 private:
  std::string path_, mounted_;
};

/// A file system of the kernel at a place of our own.
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

/// What the kernel's own trace says of one event ("kmem/mm_page_alloc_extfrag") or some, in an
/// instance that others do not see.
class Trace {
 public:
  struct Event {
    std::uint64_t ns = 0;  ///< of a clock that no other knows; in microseconds
    int cpu = 0;
    pid_t task = 0;
    std::string name, words;  ///< "irq_handler_exit", "irq=24 ret=handled"

    /// What follows "KEY=", up to a blank or comma; empty: it is not there.
    std::string value(const std::string& key) const;
  };

  /// Those that this kernel does not have are left out.
  explicit Trace(Strings events);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void stop() const { turn("0"); }
  /// Of one task, or of all, by their time.
  std::vector<Event> events(std::optional<pid_t> task = {}) const;
  /// The same as lines, from the event's name on.
  Strings lines(std::optional<pid_t> task = {}) const;

 private:
  void turn(const char* value) const;

  Mounted tracefs_{"tracefs"};
  Strings events_;
  std::string instance_;
};

/// Some kernels do not report the switch from a thread of process 1 to the next task, neither to
/// BPF nor to their own trace (seen on 6.18 of a microVM, whose process 1 is its agent).
class Unreported {
 public:
  Unreported();
  /// How many switches since construction are not reported, each from such a thread: none where the
  /// kernel's own trace has them.
  std::uint64_t switches() const;

 private:
  std::uint64_t before_;
};

/// Growth of the counters in a file of "KEY VALUE" lines, such as /proc/vmstat.
class Counters {
 public:
  explicit Counters(std::string path = "/proc/vmstat");
  /// Since construction; a key that ends in '*' sums.
  std::uint64_t growth(std::string_view key) const;

 private:
  std::uint64_t sum(const std::string& text, std::string_view key) const;
  std::string path_, before_;
};

/// The columns of /proc/diskstats that follow a disk's name; 0 where this kernel has fewer. None:
/// no such disk.
using DiskNumbers = std::array<std::uint64_t, 17>;
std::optional<DiskNumbers> diskstats(const std::string& disk);

/// What can be read of a file; a process whose file it is may end meanwhile.
std::string slurp(const std::string& path);

/// Is this machine a guest of scripts/vm, ours to change?
bool in_guest();
/// A file of /proc or /sys with another content, until the end. For guests.
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
/// How many of them are still there, after at most the time that the kernel needs to free them.
std::size_t bpf_left(const BpfIds& ids);

/// Asked of the kernel without our code.
bool has_hardware_counters();

}  // namespace coretap::tooltest
