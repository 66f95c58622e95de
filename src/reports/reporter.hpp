// The interface through which a run drives a report; one class per kind of report.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "program/session.hpp"

namespace coretap {

/// Shows the data that a tool reports; one class per kind of report.
class Reporter {
 public:
  virtual ~Reporter() = default;
  /// Before load: sets the kernel program's variables.
  virtual void configure(Session&) {}
  /// Before load, after configure(): makes maps that the program's maps need.
  virtual Result<void> make_maps(Session&) { return {}; }
  /// Before load: sets the sizes of the maps of this kind.
  virtual void size_maps(Session&) {}
  /// After load, before anything is attached: does slow preparations.
  virtual Result<void> ready(Session&) { return {}; }
  /// When everything is attached.
  virtual Result<void> open(Session&) { return {}; }
  /// Before the first line: prints titles.
  virtual void begin(Session&) {}
  /// Takes a record from the ring buffer.
  virtual void record(Session&, const void*, std::size_t) {}
  /// Tracing has ended, and time is up: records that still arrive are counted as not read.
  virtual void hurry() {}
  /// At each interval, and at the end.
  virtual void report(Session&) {}
  /// While a run is recorded: how often sample() reads what a report would read, in seconds; 0:
  /// only records and reports matter.
  virtual double sample_seconds() const { return 0; }
  virtual void sample(Session&) {}
  /// While a recording is shown: what sample() has read is there.
  virtual void sampled(Session&) {}
  /// Tracing ends, and a last report follows; programs are still attached.
  virtual void ends(Session&) {}
  /// When everything has been counted: prints what includes losses.
  virtual Result<void> finish(Session&) { return {}; }
  /// True if it also writes a file: the run then continues when standard output's reader closes.
  virtual bool keeps_file() const { return false; }
  /// True if it prints at intervals and at the end; false: as events arrive.
  virtual bool periodic() const { return true; }
  /// The longest time between calls of poll(), for data outside the ring buffer; 0: call it when
  /// records are read.
  virtual double poll_seconds() const { return 0; }
  virtual void poll(Session&) {}
  /// Starts a profile (pprof's format) of the counts from now on, or of all counts. The function
  /// that it returns makes the profile; null: not supported.
  using MakeProfile = std::function<std::string(Session&)>;
  virtual MakeProfile profile(Session&, bool /*from_now*/) { return nullptr; }
  /// Descriptors that become readable when poll() should be called at once.
  virtual std::vector<int> wakes() const { return {}; }
  /// Signals that it handles while tracing, and the handler.
  virtual std::vector<int> signals() const { return {}; }
  virtual void signalled(Session&, int) {}
  /// True if the user has requested the end, or what was looked for is found.
  virtual bool wants_end() const { return false; }
  /// Exit status of a run without failure or --strict's losses: a finding may have its own.
  virtual int status() const { return kOk; }
  /// Reports the current state instead of changes: the first report is made at once, none at
  /// the end.
  virtual bool immediate() const { return false; }
};

}  // namespace coretap
