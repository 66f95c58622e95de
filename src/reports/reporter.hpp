// How the run drives a report; one class per kind of report.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "program/session.hpp"

namespace coretap {

/// Shows what a tool reports; one class per kind of report.
class Reporter {
 public:
  virtual ~Reporter() = default;
  /// Before load: what the kernel program must know.
  virtual void configure(Session&) {}
  /// Before load: how large the maps of its kind are.
  virtual void size_maps(Session&) {}
  /// After load, before anything is attached: what takes long.
  virtual Result<void> ready(Session&) { return {}; }
  /// When all is attached.
  virtual Result<void> open(Session&) { return {}; }
  /// Before the first line: titles.
  virtual void begin(Session&) {}
  /// A record came through the ring buffer.
  virtual void record(Session&, const void*, std::size_t) {}
  /// Tracing has ended, and time is up: what still comes is counted as not read.
  virtual void hurry() {}
  /// An interval has passed, or the end has come.
  virtual void report(Session&) {}
  /// Tracing ends, and a last report follows: what is still attached.
  virtual void ends(Session&) {}
  /// When all has been counted: what losses belong to.
  virtual Result<void> finish(Session&) { return {}; }
  /// Writes elsewhere too: does not end when standard output's reader goes.
  virtual bool keeps_file() const { return false; }
  /// Prints at intervals and at the end, rather than as events come.
  virtual bool periodic() const { return true; }
  /// poll() is called this often at least, for what comes by no ring buffer; 0: whenever records
  /// are read.
  virtual double poll_seconds() const { return 0; }
  virtual void poll(Session&) {}
  /// Begins a profile (pprof's format) of what is counted from now on, or of all that there is:
  /// what it returns makes it. Null: there is none.
  using MakeProfile = std::function<std::string(Session&)>;
  virtual MakeProfile profile(Session&, bool /*from_now*/) { return nullptr; }
  /// Descriptors that can be read when poll() should be called at once.
  virtual std::vector<int> wakes() const { return {}; }
  /// Signals that it handles while it traces, and that one has come.
  virtual std::vector<int> signals() const { return {}; }
  virtual void signalled(Session&, int) {}
  /// The user has asked it to end.
  virtual bool wants_end() const { return false; }
  /// Tells what is rather than what was since the report before: the first comes at once, none at
  /// the end.
  virtual bool immediate() const { return false; }
};

}  // namespace coretap
