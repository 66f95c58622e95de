// One run of one tool: what its parts share.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/attach.hpp"
#include "core/config.hpp"
#include "core/fd.hpp"
#include "core/kernel.hpp"
#include "core/ledger.hpp"
#include "core/rights.hpp"
#include "coretap/tool.hpp"
#include "output/names.hpp"
#include "output/sink.hpp"

struct bpf_map;
struct bpf_object;

namespace coretap {

/// An array map of per-CPU slots (CPU_SLOTS), read through mmap without a system call.
class CpuSlots {
 public:
  CpuSlots() = default;
  ~CpuSlots();
  CpuSlots(const CpuSlots&) = delete;
  CpuSlots& operator=(const CpuSlots&) = delete;

  Result<void> open(bpf_map* map);
  bool is_open() const { return data_; }
  /// Adds all CPUs' slots, as arrays of 64-bit counters, into `sum`.
  void sum(std::uint64_t* sum, std::size_t counters) const;
  std::size_t size() const { return slot_; }  ///< bytes of one slot

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0, slot_ = 0;
  std::uint32_t cpus_ = 0;
};

struct ObjectDeleter {
  void operator()(bpf_object* object) const;
};

struct Session {
  const Tool& tool;
  const Config& config;
  Kernel kernel;
  Names names;
  Sink out;
  Fd file;  ///< where it writes, if not to standard output
  Ledger ledger;
  Plan plan;
  std::vector<std::string> limits;  ///< what else is lost or less true here, in words
  std::unique_ptr<bpf_object, ObjectDeleter> object;
  Fd types;  ///< what libbpf is to read of the kernel's types, until load
  Links links;
  Rights keeps;                ///< what is needed after all is attached
  bool unwinds = false;        ///< user stacks are walked by tables (src/unwind)
  std::uint64_t began_ns = 0;  ///< monotonic time when everything was attached

  Session(const Tool& t, const Config& c) : tool(t), config(c) {}

  bpf_map* map(std::string_view name) const;  ///< nullptr: the tool has none
  void say(std::string_view message) const;   ///< to stderr, with the tool's name
  void verbose(std::string_view message) const;
  void note(std::string_view what, const Error& why) const;  ///< what is missing, and why
  std::uint32_t stack_depth() const { return config.stack_depth ? config.stack_depth : 127; }
};

/// Shows what a tool reports; one class per kind of report, each in src/output/.
class Reporter {
 public:
  virtual ~Reporter() = default;
  /// Before load: what the kernel program must know.
  virtual void configure(Session&) {}
  /// After load, before anything is attached: what takes long.
  virtual Result<void> ready(Session&) { return {}; }
  /// When all is attached.
  virtual Result<void> open(Session&) { return {}; }
  /// Before the first line: titles.
  virtual void begin(Session&) {}
  /// A record came through the ring buffer.
  virtual void record(Session&, const void*, std::size_t) {}
  /// An interval has passed, or the end has come.
  virtual void report(Session&) {}
  /// When all has been counted: what losses belong to.
  virtual Result<void> finish(Session&) { return {}; }
  /// Writes elsewhere too: does not end when standard output's reader goes.
  virtual bool keeps_file() const { return false; }
  /// Prints at intervals and at the end, rather than as events come.
  virtual bool periodic() const { return true; }
  /// poll() is called so often at least, for what comes by no ring buffer; 0: whenever records are
  /// read.
  virtual double poll_seconds() const { return 0; }
  virtual void poll(Session&) {}
  /// Descriptors that can be read when poll() should be called at once.
  virtual std::vector<int> wakes() const { return {}; }
  /// The signal by which the user asks for a report (Config::dump_signal) has come.
  virtual void asked(Session&) {}
  /// Tells what is rather than what was since the report before: the first comes at once, none at
  /// the end.
  virtual bool at_once() const { return false; }
};

std::unique_ptr<Reporter> make_reporter(const Tool& tool);

/// JSON for one value of a field.
void json_value(JsonLine& line, const Field& field, const Value& value, const Names& names);
/// CSV for the same.
std::string csv_value(const Field& field, const Value& value, const Names& names);

/// Errors and their parts as the user sees them.
void print_error(std::string_view program, const Error& error);

}  // namespace coretap
