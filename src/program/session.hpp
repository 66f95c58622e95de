// One run of one tool: the state that its parts share.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped.hpp"
#include "coretap/config.hpp"
#include "coretap/fd.hpp"
#include "coretap/tool.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "program/links.hpp"
#include "program/pads.hpp"
#include "program/plan.hpp"
#include "program/source.hpp"
#include "text/ledger.hpp"
#include "text/names.hpp"
#include "text/output_file.hpp"
#include "text/sink.hpp"

struct bpf_map;
struct bpf_object;

namespace coretap {

namespace metrics {
class Exporter;
}
namespace record {
class Recorder;
}
namespace perfetto {
struct TracePart;
}

/// Maps the values of an array map into memory.
Result<void> map_memory(Mapped& memory, const bpf_map* map, std::size_t bytes, int rights);

/// An array map of per-CPU slots (CPU_SLOTS), read through mmap without a system call.
class CpuSlots {
 public:
  Result<void> open(bpf_map* map);
  bool is_open() const { return slots_.data(); }
  /// Adds the slots of all CPUs, as arrays of 64-bit counters, into `sum`.
  void sum(std::uint64_t* sum, std::size_t counters) const;
  std::size_t size() const { return slot_; }  ///< bytes of one slot
  std::uint32_t cpus() const { return cpus_; }
  const char* of_cpu(std::uint32_t cpu) const { return slots_.data() + slot_ * cpu; }

 private:
  Mapped slots_;
  std::size_t slot_ = 0;
  std::uint32_t cpus_ = 0;
};

struct Loader;

struct ObjectDeleter {
  void operator()(bpf_object* object) const;
};

struct Session {
  const Tool& tool;
  const Config& config;
  Kernel kernel;
  Names names;
  Sink out;
  OutputFile file;  ///< the output file, if not standard output
  Ledger ledger;
  Plan plan;
  std::vector<std::string> limits;  ///< limitations on this kernel, for the user
  std::shared_ptr<Loader> loader;   ///< of `object`
  std::unique_ptr<bpf_object, ObjectDeleter> object;
  Fd types;                        ///< the kernel's types for libbpf, until load
  Pads pads;                       ///< filled in by Tool::compile
  std::unique_ptr<Source> source;  ///< source of the reported data
  Links links;
  std::vector<Fd> copies;      ///< of programs on targets
  CapabilitySet retained;      ///< capabilities needed after attaching
  CapabilitySet reserve;       ///< rarely needed ones: not effective until then
  bool unwinds = false;        ///< user stacks are unwound by tables (src/unwind)
  Mapped live;                 ///< .bss, shared by the programs, after load
  bool quiet = false;          ///< prints no message
  bool silent = false;         ///< its output goes nowhere: it is only recorded
  bool fine_slots = false;     ///< JSON has fine slots, too: for comparisons
  bool incomplete = false;     ///< complete() has reported a failure
  pid_t command = 0;           ///< process of the command after --, held; 0: none
  std::uint64_t began_ns = 0;  ///< monotonic time when everything was attached
  /// Without a kernel program: receives the constants that reports set, by name.
  std::map<std::string, std::string>* constants = nullptr;
  record::Recorder* recorder = nullptr;       ///< of this run; reports then ask for all that later
                                              ///< outputs may need (ask_all)
  perfetto::TracePart* trace_part = nullptr;  ///< instead of the file of --perfetto
  metrics::Exporter* exporter = nullptr;      ///< receives the reports; nullptr: they are printed

  /// Both must outlive it.
  Session(const Tool& t, const Config& c);
  Session(const Tool& t, Config&& c) = delete;

  bpf_map* map(MapName name) const { return map_named(name.c_str()); }
  /// For names that the library makes. nullptr: the tool has none.
  bpf_map* map_named(const char* name) const;
  void say(std::string_view message) const;  ///< to stderr, with the tool's name
  void verbose(std::string_view message) const;
  /// Reports a failed reading; the run then ends with kFailed. -> whether all was read
  bool complete(const Result<void>& reading);
  void note(std::string_view what, const Error& why) const;  ///< what is missing, and why
  /// With an exporter, nothing is printed except events that have an output file.
  bool prints() const { return !exporter || file; }
  std::uint32_t stack_depth() const {
    return std::min<std::uint32_t>(user_stack_depth(), STACK_DEPTH);
  }
  std::uint32_t user_stack_depth() const {
    return config.stacks.depth ? config.stacks.depth : STACK_MOST;
  }
};

}  // namespace coretap
