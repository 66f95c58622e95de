// Interface of each kind of report. The parser, map sizes, capabilities
// and documentation use only this; none of them knows the kinds.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/histogram.hpp"
#include "coretap/lacking.hpp"
#include "coretap/result.hpp"
#include "coretap/schema.hpp"

namespace coretap {

class Config;
class Reporter;

/// Output for a report kind's part of the section OUTPUT of a manual page.
class Manual {
 public:
  virtual ~Manual() = default;
  virtual void prose(std::string_view text) = 0;
  virtual void paragraph() = 0;
  virtual void fields(const std::vector<Field>& fields) = 0;
  virtual bool has_option(std::string_view name) const = 0;
};

/// Data of a report kind for exporters (src/metrics).
struct MetricShape {
  enum Kind {
    none,        ///< nothing: its numbers cannot be summed, or it has none
    rows,        ///< counters by keys
    one_row,     ///< the same without keys
    histograms,  ///< by keys
    events,      ///< each event counts, with its fields
    stacks,      ///< profiles
    readings,    ///< gauges by keys: current values, read again for each page
  } kind = none;
  std::vector<Field> fields = {};
  std::string_view what = {};      ///< values of histograms: "latency"
  HistogramScale scale = {};       ///< of histograms
  std::size_t value_at = 0;        ///< offset of the struct hist in a row
  std::vector<Field> totals = {};  ///< counters next to the histograms, gauges next to readings

  /// For readings whose rows have arrays (SnapshotReport::Series): the elements'
  /// name and meaning, the label for their index, and their values in thousandths.
  struct Elements {
    std::string_view name = {}, label = {}, doc = {};
    std::vector<Value> (*read)(const void* record) = nullptr;
  } elements = {};
};

class ReportKind {
 public:
  virtual ~ReportKind() = default;

  /// "event", "aggregate", "stacks", "snapshot"; a tool may define another kind.
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Reporter> reporter() const = 0;

  /// Fields whose formats need data of the kernel, and that completion offers for --sort.
  virtual std::vector<Field> fields() const { return {}; }
  /// Does it print histograms, which a heat map can show?
  virtual bool has_histograms() const { return false; }
  /// Does it show single events, which a trace can have (--perfetto)?
  virtual bool has_events() const { return false; }
  /// Can its sums be added up by some of their keys (--by)?
  virtual bool adds_up() const { return false; }
  /// Do records name a process? Then coretap itself is excluded.
  virtual bool names_processes() const {
    for (auto& f : fields())
      if (f.key == "pid" && f.only_with != kNamedByOnly) return true;
    return false;
  }
  /// Size of the records that the fields read, in bytes; 0: not flat records.
  virtual std::size_t record_size() const { return 0; }
  /// Name of the struct of a record of the ring buffer or of an iterator; empty: there is none.
  virtual std::string_view record_type() const { return {}; }
  /// The same for data that lack something: fields that depend on it are empty, and `said` has a
  /// line for each of them. nullptr: it cannot show them, as it needs all that it reads.
  virtual std::shared_ptr<const ReportKind> without(const std::vector<Lacking>& /*lacking*/,
                                                    std::vector<std::string>& /*said*/) const {
    return nullptr;
  }
  /// Conditions that it checks on the command line, besides those of its fields.
  virtual std::vector<std::string_view> conditions() const { return {}; }

  /// Types of JSON lines, in order of output; columns of CSV.
  virtual std::vector<JsonKind> json() const = 0;
  virtual std::vector<OutputKey> csv() const = 0;
  virtual void manual(Manual& manual) const = 0;

  virtual MetricShape metrics(const Config&) const { return {}; }

  /// Final check of the command line, and defaults for options not given.
  virtual Result<void> check(Config&) const { return {}; }
  /// Before anything is opened: looks up the command line's names on this system.
  virtual Result<void> look_up(Config&) const { return {}; }
  /// Signals for its reporter that may arrive before it is ready: blocked from the start.
  virtual std::vector<int> early_signals(const Config&) const { return {}; }
  /// False: the loader reads all data itself; nothing is loaded or attached.
  virtual bool has_program() const { return true; }
  /// Can its runs be recorded (src/record)? Then all that its reporter shows comes from
  /// Session::source, from Names and from what base/recall.hpp has.
  virtual bool can_be_recorded() const { return false; }
  /// Does the loader itself open perf events?
  virtual bool opens_perf_events() const { return false; }
  /// For --explain if there is no program: "/proc/buddyinfo".
  virtual std::string source() const { return {}; }
  /// Size of the ring buffer, and the help text of --ring-size; empty: no such option.
  virtual std::uint64_t ring_bytes(const Config&) const { return 128 << 10; }
  virtual std::string_view ring_doc() const { return {}; }
  /// Does it print names of kernel functions? Names of system call arguments?
  virtual bool kernel_symbols() const { return false; }
  virtual bool argument_names() const { return false; }
};

/// Any kind of report, as a member of a tool: declared by the structs
/// of reports.hpp, or by a tool's own struct with a make_kind().
class Report {
 public:
  Report();  ///< a stream of events without fields
  template <class Spec>
  requires(!std::is_same_v<Spec, Report>) Report(Spec spec) : kind_(make_kind(std::move(spec))) {}

  /// ReportKind::without; nothing: it cannot show them.
  std::optional<Report> without(const std::vector<Lacking>& lacking,
                                std::vector<std::string>& said) const {
    auto kind = kind_->without(lacking, said);
    if (!kind) return {};
    auto report = *this;
    report.kind_ = std::move(kind);
    return report;
  }

  const ReportKind& operator*() const { return *kind_; }
  const ReportKind* operator->() const { return kind_.get(); }

 private:
  std::shared_ptr<const ReportKind> kind_;
};

}  // namespace coretap
