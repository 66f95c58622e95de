// What each kind of report says about itself. The parser, the sizes of maps, the capabilities and
// the documentation ask here; none of them knows the kinds.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/histogram.hpp"
#include "coretap/result.hpp"
#include "coretap/schema.hpp"

namespace coretap {

class Config;
class Reporter;

/// Where a kind of report writes its part of the section OUTPUT of a manual page.
class Manual {
 public:
  virtual ~Manual() = default;
  virtual void prose(std::string_view text) = 0;
  virtual void paragraph() = 0;
  virtual void fields(const std::vector<Field>& fields) = 0;
  virtual bool has_option(std::string_view name) const = 0;
};

/// What a kind of report gives to exporters (src/metrics).
struct MetricShape {
  enum Kind {
    none,        ///< nothing: its numbers do not add up, or it has none
    rows,        ///< counters by keys
    one_row,     ///< the same without keys
    histograms,  ///< by keys
    events,      ///< each counts, with its fields
    stacks,      ///< profiles
    readings,    ///< gauges by keys: what is at the time of a page, each time from nothing
  } kind = none;
  std::vector<Field> fields = {};
  std::string_view what = {};      ///< values of histograms: "latency"
  HistogramScale scale = {};       ///< of histograms
  std::size_t value_at = 0;        ///< where in a row the struct hist is
  std::vector<Field> totals = {};  ///< counters beside the histograms, gauges beside readings

  /// Of readings whose rows are arrays (SnapshotReport::Series): the elements' name and meaning,
  /// the label with their index, and their values in thousandths.
  struct Elements {
    std::string_view name = {}, label = {}, doc = {};
    std::vector<Value> (*read)(const void* record) = nullptr;
  } elements = {};
};

class ReportKind {
 public:
  virtual ~ReportKind() = default;

  /// "event", "aggregate", "stacks", "snapshot"; a tool may have a kind of its own.
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Reporter> reporter() const = 0;

  /// Fields whose formats need facts of the kernel, and that completion offers to --sort.
  virtual std::vector<Field> fields() const { return {}; }
  /// Does it print histograms, which a heat map can show?
  virtual bool has_histograms() const { return false; }
  /// Are its rows counters, which can be added up by some of their keys?
  virtual bool adds_up() const { return false; }
  /// Does it say which process something is of? Then coretap itself is left out.
  virtual bool names_processes() const {
    for (auto& f : fields())
      if (f.key == "pid" && f.only_with != kNamedByOnly) return true;
    return false;
  }
  /// Bytes of the records that they read; 0: these are no flat records.
  virtual std::size_t record_size() const { return 0; }
  /// Conditions that it asks the command line, beside those of its fields.
  virtual std::vector<std::string_view> conditions() const { return {}; }

  /// Types of JSON lines, in the order in which they come; columns of CSV.
  virtual std::vector<JsonKind> json() const = 0;
  virtual std::vector<OutputKey> csv() const = 0;
  virtual void manual(Manual& manual) const = 0;

  virtual MetricShape metrics(const Config&) const { return {}; }

  /// The last word on the command line, and defaults that it leaves open.
  virtual Result<void> check(Config&) const { return {}; }
  /// Before anything is opened: finds on this machine what the command line names.
  virtual Result<void> look_up(Config&) const { return {}; }
  /// Signals that its reporter handles and that may come before it can: blocked from the start.
  virtual std::vector<int> early_signals(const Config&) const { return {}; }
  /// False: the loader reads all by itself; nothing is loaded or attached.
  virtual bool has_program() const { return true; }
  /// For --explain where there is no program: "/proc/buddyinfo".
  virtual std::string source() const { return {}; }
  /// Room for records in the buffer, and what --ring-size says of it; empty: no such option.
  virtual std::uint64_t ring_bytes(const Config&) const { return 128 << 10; }
  virtual std::string_view ring_doc() const { return {}; }
  /// Does it print names of kernel functions? Names of system call arguments?
  virtual bool kernel_symbols() const { return false; }
  virtual bool argument_names() const { return false; }
};

/// Any kind of report, as a value of a tool: declared by the structs of reports.hpp, or by a tool's
/// own with its make_kind().
class Report {
 public:
  Report();  ///< a stream of events without fields
  template <class Spec>
  requires(!std::is_same_v<Spec, Report>) Report(Spec spec) : kind_(make_kind(std::move(spec))) {}

  const ReportKind& operator*() const { return *kind_; }
  const ReportKind* operator->() const { return kind_.get(); }

 private:
  std::shared_ptr<const ReportKind> kind_;
};

}  // namespace coretap
