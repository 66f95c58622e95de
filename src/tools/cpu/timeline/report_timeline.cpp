#include "tools/cpu/timeline/report_timeline.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "coretap/syscalls.hpp"
#include "perfetto/trace_file.hpp"
#include "perfetto/trace_writer.hpp"
#include "program/each_cpu.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"
#include "text/gzip.hpp"
#include "timeline.skel.h"
#include "tools/cpu/timeline/timeline_events.hpp"

namespace coretap {

namespace {

constexpr ProgramName kAllTasks = progs::on_task, kRunning = progs::on_running,
                      kUnfinished = progs::on_unfinished;
constexpr std::string_view kUsualFile = "timeline.pftrace";
constexpr double kSampleSeconds = 1;
constexpr std::size_t kMostCalls = 1 << 14;  // names, of a recording
constexpr unsigned kMostFiles = 100;         // of a recording
constexpr std::uint64_t kLeastRing = 16 << 20, kMostRing = 128 << 20, kRingOfCpu = 8 << 20;

std::string path_of(const Config& config) {
  auto given = config.text("perfetto");
  return std::string(given.empty() ? kUsualFile : given);
}

/// "1.3 MB"
std::string size_words(std::uint64_t bytes) {
  constexpr double kThousand = 1000;
  auto size = static_cast<double>(bytes);
  if (size < kThousand) return fmt::format("{} bytes", bytes);
  if (size < kThousand * kThousand) return fmt::format("{:.1f} kB", size / kThousand);
  return fmt::format("{:.1f} MB", size / kThousand / kThousand);
}

/// The signal with which the user requests the file of --last.
std::vector<int> write_signals(const Config& config) {
  return config.given("last") ? std::vector<int>{SIGUSR1} : std::vector<int>();
}

class TimelineReporter : public Reporter {
 public:
  void configure(Session& s) override {
    set_variable(s, "with_irq", s.config.holds("only=irq"));
    last_ns_ = s.config.own<TimelineSettings>().last_ns;
    to_file_ = !s.silent && !s.quiet;
    if (s.silent) last_ns_ = 0;  // the recording has all
    signals_ = write_signals(s.config);
  }

  Result<void> open(Session& s) override {
    first_path_ = path_ = path_of(s.config);
    part_of_file_ = s.trace_part;
    if (auto r = open_file(); !r) return r;
    // At the end, in a directory that may belong to another user.
    if (file_->is_renamed()) s.retained.add({Capability::dac_override, Capability::fowner});
    for (auto iterator : {kAllTasks, kUnfinished})
      if (s.plan.has(iterator))
        if (auto r = s.source->open_iterator(iterator); !r) return r;
    writer_.emplace(part_of_file_ ? part_of_file_->number + 1 : 1,
                    [this](std::string_view bytes) { take(bytes); });
    events_.emplace(
        *writer_,
        TimelineEvents::Words{[&s](std::uint32_t disk) { return s.names.name(as::disk, disk); },
                              [&s](std::uint32_t flags) { return s.names.name(as::rwbs, flags); },
                              [this](std::uint32_t index) { return call_name(index); }});
    const auto kept = recalled(Ask::report, "last", [&] { return std::to_string(last_ns_); });
    makes_parts_ = !replaying() || kept != std::to_string(last_ns_);
    return {};
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv) s.out.line(csv_header());
    clocks_ = perfetto::recorded_clocks(perfetto::read_clocks());
    writer_->clocks(clocks_);
    part_began_ns_ = clocks_.monotonic;
    write_system();
    events_->begin(s.began_ns, s.config.holds("only=sched"), s.config.filters_tasks());
    if (s.plan.has(kAllTasks) || replaying())
      take_all<timeline_task_event>(s, kAllTasks, "tasks have no names until they run");
  }

  void record(Session& s, const void* data, std::size_t size) override {
    if (auto own = report_record(data, size))
      do_again(s, *own);
    else
      events_->take(data, size);
  }

  void poll(Session& s) override {
    const auto now = perfetto::read_clocks();
    if (part_is_due(now.monotonic))
      did(s, kPart, now);
    else if (perfetto::differ(clocks_, now))
      did(s, kClocks, now);
  }

  std::vector<int> signals() const override { return signals_; }
  void signalled(Session& s, int) override {
    did(s, kWritten, perfetto::read_clocks());
    s.out.flush();
  }

  /// Segments of a recording end here, without a report.
  double sample_seconds() const override { return kSampleSeconds; }
  void sampled(Session&) override {
    if (makes_parts_ && part_is_due(monotonic_ns())) next_part(perfetto::read_clocks());
  }

  void ends(Session& s) override {
    // The program reports gaps after which no record came.
    if (!replaying()) s.complete(run_on_each_cpu(s, kRunning));
    if (s.plan.has(kUnfinished) || replaying())
      take_all<timeline_call>(s, kUnfinished, "calls under way are not shown");
  }

  void report(Session& s) override {
    events_->end_connections();
    events_->finish();
    if (last_ns_) {
      const auto now = perfetto::read_clocks();
      next_part(replaying() && makes_parts_ ? now : perfetto::recorded_clocks(now));
      write_last();
    } else {
      finish_file();
    }
    auto counts = events_->counts();
    s.ledger.count[LEDGER_UNMATCHED] += counts.repaired;
    s.ledger.count[LEDGER_OVERWRITTEN] += forgotten_.shown();
    s.ledger.shown = counts.since(forgotten_).shown();
    tell(s, monotonic_ns());
  }

  Result<void> finish(Session&) override {
    if (file_->failed()) return *file_->failed();
    return {};
  }
  bool keeps_file() const override { return true; }
  bool wants_end() const override { return file_->failed().has_value(); }

 private:
  /// Records of the report itself, in a recording.
  enum Mark : char {
    kClocks = 'c',   ///< clocks were written
    kPart = 'p',     ///< a part of --last has ended
    kWritten = 'w',  ///< the same, and --last was written to a file
  };

  void did(Session& s, Mark mark, const perfetto::Clocks& now) {
    perfetto::recorded_clocks(now);
    if (s.recorder) s.source->keep_record({reinterpret_cast<const char*>(&mark), 1});
    apply(s, mark, now);
  }

  void do_again(Session& s, std::string_view mark) {
    if (!replaying() || mark.empty()) return;
    const auto now = perfetto::recorded_clocks(perfetto::read_clocks());
    if (mark[0] == kPart && makes_parts_) return;
    if (mark[0] == kWritten && files_ >= kMostFiles) return;  // it may be anyone's recording
    if (mark[0] == kClocks || mark[0] == kPart || mark[0] == kWritten)
      apply(s, static_cast<Mark>(mark[0]), now);
  }

  void apply(Session& s, Mark mark, const perfetto::Clocks& now) {
    if (mark == kClocks) {
      clocks_ = now;
      writer_->clocks(now);
      return;
    }
    next_part(now);
    if (mark == kPart) return;
    write_last();
    tell(s, now.monotonic);
  }

  bool part_is_due(std::uint64_t now) const {
    return last_ns_ &&
           now - part_began_ns_ >= std::clamp(last_ns_ / kPartsOfLast, kLeastPartNs, kMostPartNs);
  }

  Result<void> open_file() {
    file_ = std::make_unique<perfetto::TraceFile>();
    if (part_of_file_)
      file_->open_part(part_of_file_->file);
    else if (to_file_)
      file_->open(path_);
    if (file_->failed()) return *file_->failed();
    return {};
  }

  std::string call_name(std::uint32_t index) {
    if (calls_.size() >= kMostCalls) calls_.clear();
    auto [known, fresh] = calls_.try_emplace(index);
    if (!fresh) return known->second;
    const auto parts = unpacked(recalled(Ask::syscall, std::to_string(index), [&] {
      return packed({syscall_name(index), std::string(syscall_abi(index))});
    }));
    return known->second = parts.empty() ? fmt::format("syscall {}", index) : parts[0];
  }

  /// Of --last: a piece of the trace that can be read alone, compressed.
  struct Part {
    std::uint64_t end_ns;
    std::string packed;
    TimelineEvents::Counts counts;
  };
  static constexpr std::uint64_t kPartsOfLast = 16, kLeastPartNs = 50'000'000,
                                 kMostPartNs = 1'000'000'000;
  static constexpr std::size_t kMostKept = 256 << 20;  // bytes of all parts

  /// The records of an iterator; `without`: what is missing if it fails.
  template <class Record>
  void take_all(Session& s, ProgramName iterator, std::string_view without) {
    auto all = s.source->pass(iterator, sizeof(Record));
    if (!all) return s.note(without, all.error());
    for (std::size_t at = 0; at < all->size(); at += sizeof(Record))
      events_->take(all->data() + at, sizeof(Record));
  }

  void take(std::string_view bytes) {
    if (last_ns_ && !writes_)
      part_ += bytes;
    else if (has_file())
      file_->add(bytes);
  }

  bool has_file() const { return to_file_ || part_of_file_; }

  void write_system() { writer_->system(perfetto::this_system()); }

  void next_part(const perfetto::Clocks& now) {
    events_->finish();
    parts_.push_back(
        {now.monotonic, gzip(part_, Compression::fast), events_->counts().since(in_parts_)});
    in_parts_ = events_->counts();
    kept_ += parts_.back().packed.size();
    part_.clear();
    while (parts_.size() > 1 &&
           (parts_.front().end_ns + last_ns_ < now.monotonic || kept_ > kMostKept)) {
      auto& gone = parts_.front().counts;
      for (std::size_t kind = 0; kind < TIMELINE_KINDS; kind++)
        forgotten_.of[kind] += gone.of[kind];
      forgotten_.lost += gone.lost;
      kept_ -= parts_.front().packed.size();
      parts_.pop_front();
    }
    part_began_ns_ = now.monotonic;
    clocks_ = now;
    writer_->clocks(now);
    events_->begin_part();
  }

  /// The second file of a run has a number.
  void write_last() {
    if (++files_ > 1) {
      path_ = fmt::format("{}.{}", first_path_, files_);
      (void)open_file();
    }
    writer_->flush();  // what the next part begins with
    auto next = std::exchange(part_, {});
    writes_ = true;
    writer_->clocks(clocks_);
    write_system();
    events_->write_tasks();
    writer_->flush();
    writes_ = false;
    for (auto& part : parts_)
      if (auto bytes = gunzip(part.packed, SIZE_MAX / 2); bytes && has_file()) file_->add(*bytes);
    finish_file();
    part_ = std::move(next);
  }

  void finish_file() {
    if (has_file()) file_->finish();
  }

  void tell(Session& s, std::uint64_t now) const {
    if (file_->failed()) return;
    auto counts = events_->counts().since(forgotten_);
    if (s.config.format == OutputFormat::json)
      json(s, counts, now);
    else if (s.config.format == OutputFormat::csv)
      csv(s, counts, now);
    else
      text(s, counts);
  }

  struct Number {
    std::string_view key;
    std::uint64_t value;
  };

  std::vector<Number> numbers(const TimelineEvents::Counts& c) const {
    return {{"bytes", file_->bytes()},
            {"switches", c.of[TIMELINE_SWITCH]},
            {"wakeups", c.of[TIMELINE_WAKING]},
            {"interrupts", c.of[TIMELINE_IRQ]},
            {"softirqs", c.of[TIMELINE_SOFTIRQ]},
            {"syscalls", c.of[TIMELINE_CALL]},
            {"requests", c.of[TIMELINE_REQUEST]},
            {"faults", c.of[TIMELINE_FAULT]},
            {"net", c.of[TIMELINE_NET]},
            {"gaps", c.of[TIMELINE_GAP]},
            {"gap_events", c.lost}};
  }
  std::string csv_header() const {
    std::string line = "time,file";
    for (auto& n : numbers({})) line += fmt::format(",{}", n.key);
    return line;
  }
  void json(Session& s, const TimelineEvents::Counts& counts, std::uint64_t now) const {
    JsonLine line("trace", s.tool.name);
    line.text("time", iso_time(now)).text("file", path_);
    for (auto& n : numbers(counts)) line.number(n.key, n.value);
    s.out.line(line.finish());
  }
  void csv(Session& s, const TimelineEvents::Counts& counts, std::uint64_t now) const {
    auto line = fmt::format("{},{}", iso_time(now), csv_field(path_));
    for (auto& n : numbers(counts)) line += fmt::format(",{}", n.value);
    s.out.line(line);
  }
  void text(Session& s, const TimelineEvents::Counts& counts) const {
    s.out.line(
        fmt::format("{} events, {}{}: {}", counts.shown(),
                    counts.of[TIMELINE_GAP]
                        ? fmt::format("{} lost in {} gaps, ", counts.lost, counts.of[TIMELINE_GAP])
                        : "",
                    size_words(file_->bytes()), printable(path_)));
    s.out.line(fmt::format(
        "Open it at ui.perfetto.dev (it stays in the browser), or by trace_processor.{}",
        counts.of[TIMELINE_GAP] ? " CPUs run [events lost] in the gaps." : ""));
  }

  std::string first_path_, path_;
  std::unique_ptr<perfetto::TraceFile> file_;
  const perfetto::TracePart* part_of_file_ = nullptr;  ///< of a file with those of several tools
  bool to_file_ = false;                               ///< else the trace is only recorded
  std::optional<perfetto::TraceWriter> writer_;
  std::optional<TimelineEvents> events_;
  perfetto::Clocks clocks_;

  // Of --last.
  std::uint64_t last_ns_ = 0, part_began_ns_ = 0;
  std::string part_;
  std::deque<Part> parts_;
  std::size_t kept_ = 0;
  TimelineEvents::Counts in_parts_, forgotten_;
  std::vector<int> signals_;
  unsigned files_ = 0;
  bool writes_ = false;  ///< to the file
  /// False: parts end where those of the recorded run did.
  bool makes_parts_ = true;
  std::unordered_map<std::uint32_t, std::string> calls_;  ///< names, by index
};

class TimelineKind : public ReportKind {
 public:
  std::string_view name() const override { return "timeline"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<TimelineReporter>();
  }
  bool names_processes() const override { return false; }  // CPUs run coretap, too
  bool can_be_recorded() const override { return true; }
  /// Those of all kinds: recordings with others cannot be shown.
  std::size_t record_size() const override {
    return sizeof(timeline_task_event) + sizeof(timeline_gap) + sizeof(timeline_interrupt) +
           sizeof(timeline_call) + sizeof(timeline_request) + sizeof(timeline_fault) +
           sizeof(timeline_net);
  }
  /// For the names of disks and operations.
  std::vector<Field> fields() const override {
    return {field<&timeline_request::disk>("disk", "", as::disk, "disk"),
            field<&timeline_request::flags>("operation", "", as::rwbs, "operation")};
  }
  std::uint64_t ring_bytes(const Config&) const override {
    return std::clamp(kRingOfCpu * static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_CONF)),
                      kLeastRing, kMostRing);
  }
  std::string_view ring_doc() const override {
    return "size of the buffer from the kernel (default: 8 MB for each CPU, 16 to 128 MB)";
  }
  Result<void> check(Config& config) const override {
    if (config.given("only")) return {};
    // System calls and faults of the whole machine would be most of the trace.
    std::string parts = "sched,irq,block";
    if (config.filters_tasks()) parts += ",syscalls,faults,net";
    if (config.given("min-us")) parts += ",syscalls";
    config.give("only", parts);
    return {};
  }

  std::vector<int> early_signals(const Config& config) const override {
    return write_signals(config);
  }

  std::vector<JsonKind> json() const override {
    std::vector<OutputKey> keys = {type_key("trace"), time_key()};
    auto more = numbers();
    keys.insert(keys.end(), more.begin(), more.end());
    return {{"trace", "one per file", std::move(keys)}};
  }
  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> keys = {time_key()};
    auto more = numbers();
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }
  void manual(Manual& m) const override {
    m.prose(
        "The trace is a file for Perfetto (protobuf, compressed by gzip), which ui.perfetto.dev "
        "opens in the browser without sending it anywhere, and trace_processor reads by SQL. It "
        "appears when tracing ends; an older one of its name stays until then. Standard output has "
        "a line that tells its size and the number of events.");
    m.prose(
        "With --last the file has only the last part of the trace, which is kept in memory (at most "
        "256 MB, compressed). It is also written at each signal USR1, while tracing goes on: the "
        "second file of a run has .2 at the end of its name, and so on. Events before that part "
        "count as overwritten.");
    m.prose(
        "Each CPU has a track with the tasks that it runs, each thread one with its states and "
        "wakers, each TCP connection one with its states and retransmits. Where the kernel's buffer was full, the CPU runs a task [events lost], and the "
        "track \"coretap: lost\" has the number of events: in sums, such a gap counts for no task. "
        "A larger --ring-size helps.");
  }

 private:
  static std::vector<OutputKey> numbers() {
    return {key("file", "string", "the trace"),
            key("bytes", "integer", "its size"),
            key("switches", "integer", "context switches in it"),
            key("wakeups", "integer", "wakeups, each with its waker"),
            key("interrupts", "integer", "runs of interrupt handlers"),
            key("softirqs", "integer", "runs of softirqs"),
            key("syscalls", "integer", "system calls"),
            key("requests", "integer", "requests of block devices"),
            key("faults", "integer", "page faults"),
            key("net", "integer", "events of TCP connections"),
            key("gaps", "integer", "gaps, where the buffer was full"),
            key("gap_events", "integer", "events lost in them")};
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(TimelineReport) {
  return std::make_shared<TimelineKind>();
}

}  // namespace coretap
