// Aggregates: reads the kernel's counters by key and shows their growth since the last reading; the
// fields of their output, their text in the manual, and checks of the command line.
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/live_report.hpp"
#include "coretap/nearest.hpp"
#include "coretap/percentiles.hpp"
#include "metrics/exporter.hpp"
#include "program/each_cpu.hpp"
#include "program/kept_rows.hpp"
#include "program/maps.hpp"
#include "program/variables.hpp"
#include "reports/aggregate_layout.hpp"
#include "reports/aggregate_rows.hpp"
#include "reports/histogram.hpp"
#include "reports/lacking.hpp"
#include "reports/own_activity.hpp"
#include "reports/reporter.hpp"
#include "reports/row_owner.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

/// Rows for an exporter: prints nothing.
class ExporterLayout : public AggregateLayout {
 public:
  explicit ExporterLayout(const AggregateReport& report) : report_(report) {}

  void show(Session& s, AggregateReading& r) override {
    for (auto& row : r.rows) {
      if (is_fine(report_)) {
        const auto h = hist_of(report_, row, step_of(report_.scale, s.config));
        memcpy(row.data() + report_.value_at, &h, sizeof h);
      }
      s.exporter->add(s, row.data());
    }
    s.exporter->set_totals(s, r.totals.data());
  }

 private:
  const AggregateReport& report_;
};

std::unique_ptr<AggregateLayout> make_layout(const AggregateReport& report) {
  switch (report.layout) {
    case AggregateReport::histograms:
      return make_histogram_layout(report);
    case AggregateReport::percentile_columns:
      return make_percentile_layout(report);
    default:
      return make_table_layout(report);
  }
}

constexpr std::string_view kOfCpus = "_cpus";
constexpr std::size_t in_cache_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}
constexpr std::size_t kSlotBytes = in_cache_lines(sizeof(hist));
constexpr std::size_t kFineSlotBytes = in_cache_lines(sizeof(fine_hist));
constexpr std::size_t kMostFine = 16 << 20;    // of a table's rows in bytes, unless --fine is given
constexpr std::size_t kSpareTexts = 1024;      // of removed rows, which may reappear
constexpr std::size_t kMostSampled = 1 << 20;  // keys

class AggregateReporter : public Reporter {
 public:
  explicit AggregateReporter(const LiveReport& live)
      : live_(live),
        report_(live_.aggregate),
        rows_(report_, live.running != nullptr),
        layout_(make_layout(report_)) {}

  void configure(Session& s) override {
    own_.configure(s, report_.fields);
    add_up_by(s.config.rows.by);
    keyed_ = keyed(s.config);
    const auto name = table_name();
    if (fine_fits(s)) {
      set_fine(live_.aggregate);
      rows_.deltas() = CounterDeltas(report_.event_counters);
    }
    if (s.recorder && s.config.given("fine") && !is_fine(report_))
      s.limits.emplace_back("--fine: these histograms are recorded in powers of two");
    const auto step = step_of(report_.scale, s.config);
    set_variable(s, fmt::format("{}_keyed", name), keyed_);
    set_variable(s, fmt::format("{}_step", name), is_fine(report_) ? fine_step(step) : step);
    set_variable(s, "hist_fine", is_fine(report_));
    set_variable(s, "owner_parts", owner_parts_);
    if (owner_parts_) s.names.context.owner_at = report_.owner_at();
    KeptRows::configure(s, name, owner_parts_ != 0 || is_fine(report_));
    configure_stacks(s);
    if (s.config.given("heatmap")) layout_ = make_heatmap_layout(report_);
    if (s.exporter) layout_ = std::make_unique<ExporterLayout>(report_);
    rows_.order(s.config.rows.sort.empty() ? report_.sort : std::string_view(s.config.rows.sort));
    layout_->configure(s);
  }

  void size_maps(Session& s) override {
    if (auto* map = s.map(report_.map); map && keyed_) {
      size_for_keys(s, map);
      if (owner_parts_) bpf_map__set_key_size(map, static_cast<__u32>(key_bytes()));
    }
    if (auto* map = counter_map(s); map && is_fine(report_))
      bpf_map__set_value_size(map, keyed_ ? sizeof(fine_hist) : kFineSlotBytes);
    if (!has_stacks()) return;
    StackNames::size_maps(s);
    if (auto* map = s.map(MapName("stacks"))) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override { return names_.ready(s); }

  Result<void> open(Session& s) override {
    last_ns_ = monotonic_ns();
    if (auto opened = layout_->open(s); !opened) return opened;
    if (live_.read_totals)
      first_totals_ = totals();
    else if (report_.totals_size)
      if (auto opened = open(
              s, totals_, {.map = report_.totals_map.c_str(), .value_size = report_.totals_size});
          !opened)
        return opened;
    if (!report_.pass.empty()) {
      if (auto opened = s.source->open_iterator(report_.pass); !opened) return opened;
      if (auto passed = s.source->pass(report_.pass, 1); !passed) return passed.error();
    }
    auto opened = open(s, counters_,
                       {.map = counter_map_name(),
                        .key_size = keyed_ ? key_bytes() : report_.key_size,
                        .value_size = report_.value_size,
                        .keyed = keyed_,
                        .owned = owner_parts_ != 0,
                        .largest = report_.largest,
                        .running = live_.running});
    if (opened && live_.running && report_.layout == AggregateReport::interval)
      before_ = sum_of(*counters_, report_.value_size / 8);
    return opened;
  }

  void begin(Session& s) override {
    s.names.context.texts = &texts_;
    layout_->begin(s);
  }

  // Records announce processes whose user stack was seen for the first time, and texts of rows.
  void record(Session& s, const void* data, std::size_t size) override {
    if ((!stacks_.empty() && names_.take(s, data, size)) || size < sizeof(row_text)) return;
    auto& r = *static_cast<const row_text*>(data);
    if (r.text.at + r.text.bytes > size) return;
    texts_[std::string(r.key, report_.key_size)] = file_path(text_of(r, r.text), r.kind);
  }

  void report(Session& s) override {
    end_interval(s);
    auto now = ended_ns_ ? ended_ns_ : monotonic_ns();
    s.names.context.seconds = static_cast<double>(now - last_ns_) / 1e9;
    last_ns_ = now;
    auto before = rows_.events();
    std::vector<std::string> rows;
    if (report_.layout == AggregateReport::interval) {
      rows.push_back(one_row());
    } else {
      AggregateRows::Reading largest;
      auto all = counters_->read(now, largest);
      if (!counters_->whole()) rows_.deltas().complete(all);
      rows = rows_.since_last(std::move(all), largest, s.names.context);
      if (s.recorder)
        for (auto& row : rows) ask_all(report_.fields, row.data(), s.names);
      auto refused = refuse(rows, s.names.context);
      s.ledger.count[LEDGER_FILTERED] += refused;
      before += refused;
      auto& deltas = rows_.deltas();
      for (auto& [key, last] : counters_->take_out(deltas.idle(), deltas.keys(), now))
        deltas.gone(key, last);
      s.ledger.shown += rows_.events() - before;
      rows_.merge(rows, s.names.context);
      if (by_buckets())
        merge_buckets(rows, s.names.context);
      else
        rows_.merge_by(rows, by_, s.names.context);
      for (auto& row : rows) look_at_stacks(s, row);
    }
    auto all_totals = totals();
    group(rows, s.names.context);
    AggregateReading reading{rows, rows_, all_totals, iso_time(now)};
    if (s.recorder && report_.layout == AggregateReport::screen) machine_loads();
    layout_->show(s, reading);
    if (has_stacks()) names_.next_report();
    if (texts_.size() > 2 * rows_.deltas().keys() + kSpareTexts) forget_texts();
  }

  double sample_seconds() const override { return 1; }
  void sample(Session& s) override {
    Counters none(report_.value_size / 8);
    AggregateRows::Reading largest;
    for (auto& [key, counters] : counters_->read(monotonic_ns(), largest))
      if (sampled_.size() < kMostSampled && sampled_.insert(key).second)
        ask_all(report_.fields, rows_.row_of(key, none).data(), s.names);
    (void)totals();
    if (report_.layout == AggregateReport::screen) machine_loads();
  }

  void ends(Session& s) override {
    end_interval(s);
    ended_ns_ = monotonic_ns();
  }

  double poll_seconds() const override { return names_.poll_seconds(); }
  void poll(Session& s) override {
    names_.poll(s);
    layout_->poll(s, rows_);
  }
  std::vector<int> wakes() const override {
    auto all = names_.wakes();
    for (int fd : layout_->wakes()) all.push_back(fd);
    return all;
  }
  std::vector<int> signals() const override { return layout_->signals(); }
  void signalled(Session& s, int number) override { layout_->signalled(s, number); }
  bool wants_end() const override { return layout_->wants_end(); }
  Result<void> finish(Session& s) override { return layout_->finish(s); }
  bool keeps_file() const override { return layout_->keeps_file(); }

 private:
  using Counters = AggregateRows::Counters;

  /// Hides the keys by which rows are not grouped.
  void add_up_by(const std::vector<std::string>& keys) {
    if (keys.empty()) return;
    auto& fields = live_.aggregate.fields;
    auto by = [&](const Field& f) {
      return std::find(keys.begin(), keys.end(), f.key) != keys.end();
    };
    bool all_keys = report_.layout == AggregateReport::histograms;
    auto owners = fields;
    std::erase_if(owners, [&](auto& f) { return !by(f); });
    auto parts = owner_parts(owners);
    std::erase_if(fields, [&](auto& f) { return (all_keys || is_key(f)) && !by(f); });
    for (auto& f : fields) {
      if (!by(f)) continue;
      f.shown_with = f.only_with = {};
      by_.push_back(f);
    }
    owner_parts_ = parts;
    layout_ = make_layout(report_);
  }

  /// The aggregate's name in the kernel program, which also names its variables.
  std::string_view table_name() const {
    std::string_view name = report_.map;
    if (name.ends_with(kOfCpus)) name.remove_suffix(kOfCpus.size());
    return name;
  }
  std::string counter_map_name() const {
    return keyed_ ? report_.map.c_str() : fmt::format("{}{}", table_name(), kOfCpus);
  }
  bpf_map* counter_map(const Session& s) const { return s.map_named(counter_map_name().c_str()); }

  /// Of a recording: does it have fine slots? Else: is the run to be recorded with them?
  bool fine_fits(Session& s) const {
    if (!recall || report_.layout != AggregateReport::histograms || report_.scale.linear)
      return false;
    return recalled(Ask::fine_slots, counter_map_name(),
                    [&] { return std::string(fits_in_maps(s) ? "1" : "0"); }) == "1";
  }
  bool fits_in_maps(Session& s) const {
    auto* map = s.object ? counter_map(s) : nullptr;
    // A map of arrays of histograms cannot have them.
    if (!map || bpf_map__value_size(map) != (keyed_ ? sizeof(hist) : kSlotBytes)) return false;
    if (s.config.given("no-fine")) return false;
    if (!keyed_ || s.config.given("fine")) return true;
    size_for_keys(s, map);
    return bpf_map__max_entries(map) * (sizeof(fine_hist) + key_bytes()) <= kMostFine;
  }

  bool keyed(const Config& config) const {
    if (report_.keyless) return false;
    if (owner_parts_) return true;
    if (report_.layout != AggregateReport::histograms) return config.holds(report_.keyed_when);
    return std::any_of(report_.fields.begin(), report_.fields.end(),
                       [&](auto& key) { return config.holds(key.shown_with); });
  }

  std::size_t key_bytes() const {
    return owner_parts_ ? report_.value_at + sizeof(task_id) : report_.key_size;
  }

  std::uint64_t events_of(const std::string& row) const {
    std::uint64_t events = 0;
    for (std::size_t i = 0; i < report_.event_counters; i++) {
      std::uint64_t counter = 0;
      memcpy(&counter, row.data() + report_.value_at + i * 8, sizeof counter);
      events += counter;
    }
    return events;
  }

  void group(std::vector<std::string>& rows, FieldContext& context) const {
    if (!report_.group_of) return;
    context.groups.clear();
    for (auto& row : rows) {
      std::uint64_t counter = 0;
      memcpy(&counter, row.data() + report_.value_at, sizeof counter);
      auto& of = context.groups[report_.group_of(row.data())];
      of.sum += counter;
      of.most = std::max(of.most, counter);
    }
    rows_.sort(rows, context);  // may sort by data of groups
  }

  void end_interval(Session& s) {
    if (!report_.pass.empty() && !ended_ns_) {
      if (auto passed = s.source->pass(report_.pass, 1); !passed)
        s.note("what has happened to objects that still exist is not counted yet", passed.error());
    }
    if (report_.at_intervals.empty() || no_intervals_ || ended_ns_) return;
    auto run = run_on_each_cpu(s, report_.at_intervals);
    if (run) return;
    s.note("what is in progress at the end of an interval is not counted in it", run.error());
    no_intervals_ = true;
  }

  /// Removes the excluded rows; returns the number of their events.
  std::uint64_t refuse(std::vector<std::string>& rows, const FieldContext& context) const {
    std::uint64_t events = 0;
    std::erase_if(rows, [&](auto& row) {
      if (!own_.is(row.data(), context) && (!report_.wanted || report_.wanted(row.data(), context)))
        return false;
      events += events_of(row);
      return true;
    });
    return events;
  }

  Counters totals() const {
    Counters all(report_.totals_size / 8);
    if (!live_.read_totals) return totals_ ? sum_of(*totals_, all.size()) : all;
    const auto bytes = recalled(Ask::totals, "", [&] {
      live_.read_totals(all.data());
      return std::string(reinterpret_cast<const char*>(all.data()), all.size() * sizeof all[0]);
    });
    memcpy(all.data(), bytes.data(), std::min(bytes.size(), all.size() * sizeof all[0]));
    for (std::size_t i = 0; i < first_totals_.size(); i++) all[i] -= first_totals_[i];
    return all;
  }

  /// A table whose rows are by bucket of a value, too (AggregateReport::bucket_at): rows that
  /// differ in nothing else become one, whose last counters are the percentiles.
  bool by_buckets() const { return report_.layout == AggregateReport::table && report_.bucket_at; }

  void merge_buckets(std::vector<std::string>& rows, const FieldContext& context) const {
    auto same = [&](const std::string& row) {
      std::vector<Value> values;
      if (by_.empty()) values.emplace_back(row.substr(0, report_.key_size));
      for (auto& f : by_) values.push_back(f.read(row.data(), context));
      return values;
    };
    std::map<std::vector<Value>, FineCounts> counts;
    for (auto& row : rows) {
      std::uint32_t bucket = 0;
      memcpy(&bucket, row.data() + report_.bucket_at, sizeof bucket);
      memset(row.data() + report_.bucket_at, 0, sizeof bucket);
      counts[same(row)][bucket] += events_of(row);
    }
    rows_.merge_equal(rows, context);
    rows_.merge_by(rows, by_, context);
    const auto percents = report_.usual_percentiles.size();
    for (auto& row : rows) {
      auto* to = row.data() + report_.value_at + report_.value_size - percents * 8;
      for (auto percent : report_.usual_percentiles) {
        auto value = fine_percentile(counts[same(row)], percent);
        memcpy(to, &value, sizeof value);
        to += sizeof value;
      }
    }
    rows_.sort(rows, context);
  }

  bool has_stacks() const { return !stacks_.empty() || report_.callers; }

  void configure_stacks(Session& s) {
    for (auto& f : report_.fields)
      if (f.is_stack() && s.config.holds(f.shown_with) && s.config.holds(f.only_with))
        stacks_.push_back(&f);
    if (!has_stacks()) return;
    auto has = [&](std::string_view key) {
      return std::any_of(stacks_.begin(), stacks_.end(), [&](auto* f) { return f->key == key; });
    };
    set_variable(s, "stack_kernel", has("kernel_stack"));
    set_variable(s, "stack_user", has("user_stack"));
    names_.configure(s, {.offsets = report_.callers, .modules = s.config.given("verbose")},
                     has("user_stack"));
    if (report_.callers) set_lock_code(s);
    s.names.context.stack_of = [this, &s](std::uint64_t id, std::optional<std::uint32_t> process) {
      auto& named =
          process ? names_.user(s, id, static_cast<pid_t>(*process)) : names_.kernel(s, id);
      if (looking_at_) {
        if (named.missed) s.ledger.count[LEDGER_STACK_FAILED] += looking_at_;
        s.ledger.user_stack(named.cut, named.guessed, looking_at_);
      }
      auto frames = named.frames;
      if (auto marks = stack_marks(named.cut, named.guessed); !marks.empty())
        frames.push_back(marks);
      return frames;
    };
  }

  static void set_lock_code(Session& s) {
    auto code = lock_code();
    set_variable(s, "sched_code", &code.sched, sizeof code.sched);
    set_variable(s, "spin_code", &code.spin, sizeof code.spin);
    set_variable(s, "mmap_code", &code.mmap, sizeof code.mmap);
    if (!code.sched.end)
      s.limits.emplace_back(
          "callers of locks are not known (/proc/kallsyms hides addresses; CAP_SYSLOG or root sees "
          "them)");
  }

  /// Counts the row's events by the defects of its stacks.
  void look_at_stacks(Session& s, const std::string& row) {
    looking_at_ = events_of(row);
    for (auto* f : stacks_) f->read(row.data(), s.names.context);
    looking_at_ = 0;
  }

  void forget_texts() {
    std::erase_if(texts_, [&](auto& text) { return !rows_.deltas().knows(text.first); });
  }

  static Result<void> open(Session& s, std::unique_ptr<CounterSource>& to, CounterShape shape) {
    auto opened = s.source->counters(std::move(shape));
    if (!opened) return opened.error();
    to = std::move(*opened);
    return {};
  }

  /// The sum of an aggregate with a single value; zeros if nothing was counted.
  static Counters sum_of(CounterSource& source, std::size_t counters) {
    CounterSource::Reading none;
    auto all = source.read(0, none);
    return all.empty() ? Counters(counters) : std::move(all.begin()->second);
  }

  /// Also for an interval without events.
  std::string one_row() {
    auto now = sum_of(*counters_, report_.value_size / 8);
    before_.resize(now.size());
    std::string row(report_.value_size, '\0');
    for (std::size_t i = 0; i < now.size(); i++) {
      auto added = now[i] - before_[i];
      memcpy(row.data() + i * 8, &added, 8);
    }
    before_ = std::move(now);
    return row;
  }

  LiveReport live_;
  const AggregateReport& report_;  // part of live_
  std::vector<Field> by_;
  AggregateRows rows_;
  OwnActivity own_;
  std::unique_ptr<AggregateLayout> layout_;
  std::unique_ptr<CounterSource> counters_, totals_;
  Counters before_, first_totals_;
  RowTexts texts_;
  std::vector<const Field*> stacks_;  ///< the stacks that are shown
  StackNames names_;
  std::uint64_t looking_at_ = 0;  ///< events of the row whose stacks are being read
  bool keyed_ = false, no_intervals_ = false;
  std::set<std::string> sampled_;  ///< keys whose names sample() has asked for
  std::uint32_t owner_parts_ = 0;  ///< enum owner_part
  std::uint64_t last_ns_ = 0, ended_ns_ = 0;
};

/// "a,b" -> "a, then b"
std::string in_turn(std::string_view list) {
  std::string words(list);
  for (std::size_t at = 0; (at = words.find(',', at)) != words.npos; at += 6)
    words.replace(at, 1, ", then ");
  return words;
}

class AggregateKind : public ReportKind {
 public:
  struct Complete {};  ///< the fields include those of owners
  AggregateKind(LiveReport live, Complete) : live_(std::move(live)), report_(live_.aggregate) {}
  explicit AggregateKind(LiveReport live) : live_(std::move(live)), report_(live_.aggregate) {
    if (!has_owner(report_)) return;
    auto& fields = live_.aggregate.fields;
    auto owners = owner_fields(report_);
    fields.insert(fields.end(), owners.begin(), owners.end());
  }

  std::string_view name() const override { return "aggregate"; }
  bool kernel_symbols() const override {
    return std::ranges::any_of(report_.fields, &Field::is_stack);
  }
  bool adds_up() const override {
    return !report_.keyless && report_.layout != AggregateReport::interval &&
           report_.layout != AggregateReport::percentile_columns &&
           report_.layout != AggregateReport::bars && std::ranges::any_of(report_.fields, is_key);
  }
  MetricShape metrics(const Config& config) const override {
    using Layout = AggregateReport::Layout;
    if (report_.layout == Layout::percentile_columns) return {};
    MetricShape shape{.kind = report_.layout == Layout::histograms ? MetricShape::histograms
                              : report_.layout == Layout::interval ? MetricShape::one_row
                                                                   : MetricShape::rows,
                      .fields = report_.fields};
    shape.what = report_.what;
    shape.scale = report_.scale;
    shape.scale.step = step_of(report_.scale, config);
    shape.value_at = report_.value_at;
    shape.totals = report_.totals;
    return shape;
  }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<AggregateReporter>(live_);
  }
  std::vector<Field> fields() const override {
    return in_columns(report_.fields, report_.orders, Config());
  }
  bool has_histograms() const override { return report_.layout == AggregateReport::histograms; }
  std::size_t record_size() const override { return report_.row_size(); }
  std::shared_ptr<const ReportKind> without(const std::vector<Lacking>& lacking,
                                            std::vector<std::string>& said) const override {
    std::vector<Lacking> of_row, of_totals;
    std::string_view name = report_.map;
    if (name.ends_with(kOfCpus)) name.remove_suffix(kOfCpus.size());
    for (auto lack : lacking) {
      if (lack.map == report_.totals_map) {
        of_totals.push_back(lack);
      } else if (lack.map == name || lack.map == std::string(name) + std::string(kOfCpus)) {
        if (lack.of == Lacking::value) lack.at += report_.value_at;
        of_row.push_back(lack);
      }
    }
    auto live = live_;
    leave_empty(live.aggregate.fields, report_.row_size(), of_row, said);
    leave_empty(live.aggregate.totals, report_.totals_size, of_totals, said);
    return std::make_shared<AggregateKind>(std::move(live), Complete());
  }
  bool can_be_recorded() const override { return true; }
  std::vector<std::string_view> conditions() const override {
    std::vector<std::string_view> all = {report_.keyed_when, report_.extension,
                                         report_.header_when};
    if (report_.time_when != "timestamp") all.push_back(report_.time_when);
    for (auto& order : report_.orders) all.push_back(order.when);
    return all;
  }

  std::vector<JsonKind> json() const override {
    JsonKind kind;
    if (report_.layout == AggregateReport::histograms) {
      kind = {"histogram",
              report_.fields.empty() ? "one per report" : "one per report and set of keys",
              {type_key("histogram"), time_key()}};
      for (auto& f : report_.fields) kind.keys.push_back(of(f, f.shown_with));
      for (auto& f : report_.totals) kind.keys.push_back(key(f, report_.totals_size));
      for (auto& k : histogram_keys(report_.scale)) kind.keys.push_back(k);
      return {kind};
    }
    if (report_.layout == AggregateReport::percentile_columns) {
      kind = {
          "percentiles", "one per report and set of keys", {type_key("percentiles"), time_key()}};
      for (auto& k : columns()) kind.keys.push_back(k);
      for (auto& k : percentile_keys(report_.scale)) kind.keys.push_back(k);
      return {kind};
    }
    bool interval = report_.layout == AggregateReport::interval;
    auto* type = interval ? "interval" : "row";
    kind = {type, interval ? "one per report" : "one per row", {type_key(type), time_key()}};
    for (auto& k : columns()) kind.keys.push_back(k);
    return {kind};
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key()};
    if (report_.layout == AggregateReport::histograms) {
      for (auto& f : report_.fields) all.push_back(of(f, f.shown_with));
      for (auto& f : report_.totals) all.push_back(key(f, report_.totals_size));
      for (auto& k : slot_keys(report_.scale)) {
        all.push_back(k);
        // Totals are reported even if they have no values.
        if (!report_.totals.empty() && k.name != "count") all.back().type = "integer or null";
      }
    } else {
      for (auto& k : columns()) all.push_back(k);
      if (report_.layout == AggregateReport::percentile_columns)
        for (auto& k : percentile_columns(report_.scale)) all.push_back(k);
    }
    return all;
  }

  void manual(Manual& m) const override {
    if (report_.layout == AggregateReport::histograms)
      histogram_manual(m);
    else if (report_.layout == AggregateReport::interval)
      interval_manual(m);
    else if (report_.layout == AggregateReport::bars)
      bars_manual(m);
    else if (report_.layout == AggregateReport::percentile_columns)
      percentile_manual(m);
    else
      table_manual(m);
  }

  Result<void> check(Config& c) const override {
    if (c.given("heatmap")) {
      if (!c.schedule.interval) c.schedule.interval = 1;
      if (c.files.heatmap.empty() && c.format != OutputFormat::text)
        return Error{"--heatmap without a file is for text",
                     {},
                     "with --json or --csv name a file: --heatmap FILE.svg",
                     kUsage};
    }
    for (auto& key : c.rows.by) {
      std::vector<std::string_view> known;
      for (auto& f : report_.fields)
        if (is_key(f) && f.format.kind != Format::stack && !f.table_only) known.push_back(f.key);
      auto r = check_key("--by", key, known);
      if (!r && !report_.no_owner.empty() && is_owner_key(key))
        r.error().why = fmt::format("no task owns the counted events: {}", report_.no_owner);
      if (!r) return r;
    }
    if (report_.sort.empty()) return {};
    if (auto r = take_sort_word(c); !r) return r;
    std::vector<std::string_view> known;
    for (auto& f : report_.fields)
      if (c.holds(f.only_with)) known.push_back(f.key);
    if (!c.rows.sort.empty())
      if (auto r = check_key("--sort", c.rows.sort, known); !r) return r;
    if (!c.given("top") && c.format == OutputFormat::text) c.rows.top = report_.top;
    return {};
  }

 private:
  /// Replaces a key of another tool; refuses several keys, and those that other options replace.
  Result<void> take_sort_word(Config& c) const {
    std::vector<std::string> instead;
    bool replaced = false;
    take_parts(c.rows.sort, [&](std::string_view part) {
      instead.push_back(fmt::format("--sort {}", part));
      for (auto& [word, key] : report_.sort_words)
        if (part == word && key.starts_with("--")) {
          instead.back() = key;
          replaced = true;
        }
      return true;
    });
    if (replaced || instead.size() > 1)
      return usage(fmt::format("--sort: '{}' is not one key of this report", c.rows.sort),
                   fmt::format("use {}", fmt::join(instead, ", or ")));
    for (auto& [word, key] : report_.sort_words)
      if (c.rows.sort == word) c.rows.sort = key;
    return {};
  }
  OutputKey of(const Field& f, When when) const { return key(f, record_size(), when); }
  std::vector<OutputKey> columns() const {
    std::vector<OutputKey> all;
    for (auto& f : report_.fields) {
      if (f.table_only) continue;
      all.push_back(of(f, f.only_with));
      // There is no key that a number could be part of.
      auto& meaning = all.back().meaning;
      if (report_.layout == AggregateReport::interval && meaning == Meaning::id)
        meaning = Meaning::sum;
    }
    return all;
  }

  void histogram_manual(Manual& m) const {
    auto& scale = report_.scale;
    m.prose(
        fmt::format("Each report is a histogram of {}: a line for each range{}, with the "
                    "number of values in it and a bar.",
                    report_.what, scale.linear ? "" : " of powers of two"));
    if (m.has_option("microseconds") && scale.step == 1)
      m.prose(
          "Ranges are in nanoseconds, microseconds with --microseconds, or milliseconds with "
          "--milliseconds.");
    else if (m.has_option("milliseconds"))
      m.prose("Ranges are in microseconds, or milliseconds with --milliseconds.");
    else if (m.has_option("nanoseconds"))
      m.prose("Ranges are in microseconds, or nanoseconds with --nanoseconds.");
    else if (scale.unit.suffix == unit::ns.suffix)
      m.prose(scale.step == 1'000 ? "Ranges are in microseconds." : "Ranges are in milliseconds.");
    else if (scale.linear && scale.step > 1)
      m.prose(fmt::format("Each range has {} {}.", scale.step, scale.unit.plural));
    else if (!scale.unit.plural.empty())
      m.prose(fmt::format("Ranges are in {}{}.",
                          scale.step == 1 ? "" : fmt::format("{} ", scale.step),
                          scale.unit.plural));
    if (scale.linear)
      m.prose(fmt::format("The last range, from {} on, has no upper bound.",
                          scale.from(HIST_SLOTS - 1)));
    if (report_.averages) m.prose("A line with average, total and count follows.");
    if (!report_.extension.empty())
      m.prose(fmt::format("With --{} a line with average, total and count follows.",
                          report_.extension));
    if (!report_.totals.empty()) {
      m.prose(fmt::format(
          "The line \"{}\" above it covers the time since tracing began; JSON has its values as "
          "keys of the report, CSV as columns of each row:",
          report_.totals_title));
      m.fields(report_.totals);
      m.prose(
          "In CSV a report without values is one row with empty ranges and the count 0, so that "
          "its totals are present.");
    }
    if (m.has_option("heatmap"))
      m.prose(
          "With --heatmap each histogram is one line: a character for each range, in ascending "
          "order, followed by the number of values. The more values a range has, the denser its "
          "character, from '.' to '@'. The line FROM has the least number of each character; it is "
          "printed again when larger numbers need other steps. The last range also holds all "
          "values above it. With a file name, the histograms become one picture instead.");
    if (auto fields = own_fields(); !fields.empty()) {
      m.paragraph();
      m.prose(
          "There is one histogram for each combination of those of these keys that are "
          "requested; the names in JSON and CSV are in parentheses.");
      m.fields(fields);
    }
    owner_manual(m);
  }

  /// The fields that exist without --by.
  std::vector<Field> own_fields() const {
    auto own = fields();
    std::erase_if(own, is_owner_field);
    return own;
  }

  void owner_manual(Manual& m) const {
    std::vector<std::string_view> keys;
    for (auto& f : report_.fields)
      if (is_owner_field(f)) keys.push_back(f.key);
    if (keys.empty()) return;
    m.prose(fmt::format("--by also accepts the keys of the task that the values belong to: {}.",
                        fmt::join(keys, ", ")));
  }

  void interval_manual(Manual& m) const {
    m.prose(
        "One line per report, about what happened since the previous one; the columns' keys in "
        "JSON and CSV are in parentheses.");
    if (report_.time_when.empty())
      m.prose("Each line starts with the time.");
    else if (m.has_option(report_.time_when))
      m.prose(fmt::format("With --{} each line starts with the time.", report_.time_when));
    m.fields(report_.fields);
  }

  void percentile_manual(Manual& m) const {
    m.prose(fmt::format(
        "Each report has a row for each set of keys with values since the previous report, with "
        "their number and a column for each percentile: p99 is the {} that 99 % of them do not "
        "exceed. The error is at most 0.8 %.",
        report_.what));
    if (m.has_option("overall"))
      m.prose("With --overall all values since tracing began count, and all keys have rows.");
    m.prose(
        "JSON has an object for each row, and CSV a row for each percentile of it, both also "
        "with the overall values. The keys, with their names in JSON and CSV in parentheses:");
    m.fields(report_.fields);
  }

  void bars_manual(Manual& m) const {
    m.prose(fmt::format(
        "Each report is a linear histogram: a line for each {}, with a number and a bar. "
        "JSON and CSV have a row for each, with these keys:",
        report_.what));
    m.fields(report_.fields);
  }

  void table_manual(Manual& m) const {
    const bool screen = report_.layout == AggregateReport::screen;
    const bool lines = report_.layout == AggregateReport::lines;
    auto when = lines ? report_.time_when : report_.header_when;
    if (screen)
      m.prose(
          "On a terminal each report is drawn over the previous one, in the size of the "
          "terminal. The key q quits, s sorts by the next column, r reverses the order, p or "
          "space pauses. With --noclear, or if standard output is not a terminal, reports follow "
          "each other.");
    m.prose(fmt::format(
        "Each report has a row for each key with something to report since the previous report, "
        "sorted by {}, the largest {}; the columns' keys in JSON and CSV are in parentheses. {} {}.",
        in_turn(report_.sort), report_.largest_last ? "last" : "first",
        when.empty()            ? "In text"
        : when.starts_with('!') ? fmt::format("Without --{}", when.substr(1))
                                : fmt::format("With --{}", when),
        screen  ? "a line with the time of day and the load averages comes first"
        : lines ? "each line starts with the time of day"
                : "a line with the time of day comes first"));
    if (m.has_option("top") && report_.top)
      m.prose(fmt::format("Text output has the first {} rows unless --top is given.", report_.top));
    m.fields(own_fields());
    owner_manual(m);
  }

  LiveReport live_;
  const AggregateReport& report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(AggregateReport report) {
  return make_kind(LiveReport{std::move(report)});
}
std::shared_ptr<const ReportKind> make_kind(LiveReport report) {
  return std::make_shared<AggregateKind>(std::move(report));
}

}  // namespace coretap
