#include "tools/cpu/neighbours/report_neighbours.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/figures.hpp"
#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "kernel/kernel.hpp"
#include "metrics/exporter.hpp"
#include "neighbours.skel.h"
#include "program/kept_rows.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/counter_deltas.hpp"
#include "reports/reporter.hpp"
#include "text/screen.hpp"
#include "text/terminal.hpp"
#include "tools/cpu/neighbours/losses.hpp"
#include "tools/cpu/neighbours/pressure.hpp"

namespace coretap {

namespace {

using neighbours::kParts;
using neighbours::Losses;
using neighbours::Victim;

constexpr MapName kMap = maps::lost, kReclaims = maps::reclaims;
constexpr ProgramName kIterator = progs::on_open;
constexpr std::uint64_t kTop = 20;      // rows of text without --top
constexpr std::uint64_t kCulprits = 3;  // below each row without --culprits,
constexpr double kLeastShare = 1;       // of these, percent of the time
constexpr std::uint64_t kRootCgroup = 1;
constexpr std::size_t kNameWidth = 40;

/// The time of a victim in one part, for exporters.
struct LostMetric {
  const Victim* victim;
  std::size_t part;
  const std::string* culprit;  ///< nullptr: none
  std::uint64_t ns;
};

std::vector<Field> metric_fields() {
  static const auto kRow = [](const void* record) -> auto& {
    return *static_cast<const LostMetric*>(record);
  };
  return {Field{"cgroup", "CGROUP", as::rest, "cgroup, container or unit that lost the time",
                [](const void* record, const FieldContext&) -> Value {
                  return kRow(record).victim ? kRow(record).victim->name : std::string();
                }}
              .capped(),
          Field{"part", "PART", as::text, "what the time was lost to; run: it was not lost",
                [](const void* record, const FieldContext&) -> Value {
                  return std::string(neighbours::parts()[kRow(record).part].key);
                }}
              .bounded(),
          Field{"culprit", "CULPRIT", as::rest, "cgroup, container or unit that had the CPU",
                [](const void* record, const FieldContext&) -> Value {
                  return kRow(record).culprit ? *kRow(record).culprit : std::string();
                }}
              .capped(),
          field<&LostMetric::ns>("time_ns", "TIME", as::microseconds, "time").counter()};
}

class NeighboursReporter : public Reporter {
 public:
  void configure(Session& s) override {
    auto& by = s.config.rows.by;
    by_ = by.empty() || by[0] == "cgroup" ? CgroupName::path
          : by[0] == "container"          ? CgroupName::container
                                          : CgroupName::unit;
    KeptRows::configure(s, kMap, false);
    find_limits(s);
  }

  void size_maps(Session& s) override {
    for (auto name : {kMap, kReclaims})
      if (auto* map = s.map(name)) size_for_keys(s, map);
  }

  Result<void> open(Session& s) override {
    name(s, kRootCgroup);  // finds the names of all
    for (auto [name, to] : {std::pair(kMap, &lost_), std::pair(kReclaims, &reclaims_)}) {
      auto opened = s.source->counters({.map = std::string(name),
                                        .key_size = sizeof(neighbour_key),
                                        .value_size = sizeof(neighbour_sum),
                                        .keyed = true});
      if (!opened) return opened.error();
      to->source = std::move(*opened);
    }
    return s.source->open_iterator(kIterator);
  }

  void begin(Session& s) override {
    from_ns_ = s.began_ns;
    const auto mount = recalled(Ask::directories, "cgroup2", [] {
      auto found = cgroup2_mount();
      return found ? *found : std::string();
    });
    if (!mount.empty() && by_ == CgroupName::path) pressures_.begin(mount);
    if (s.config.format == OutputFormat::text && s.config.given("screen") && !s.file &&
        Screen::possible())
      screen_.open();
    if (s.config.format != OutputFormat::csv) return;
    std::string line;
    for (auto& k : keys(true)) line += (line.empty() ? "" : ",") + k.name;
    s.out.line(line);
  }

  void ends(Session& s) override {
    read(s);
    ended_ = true;
  }

  void report(Session& s) override {
    if (!ended_) read(s);
    auto rows = neighbours::victims(losses_, [&](std::uint64_t id) { return name(s, id); });
    for (auto& row : rows) s.ledger.shown += row.waits;
    if (s.exporter)
      count(s, rows);
    else
      show(s, rows);
    from_ns_ = until_ns_;
  }

  void poll(Session&) override {
    auto keys = screen_.take_keys();
    if (keys.find_first_of("qQ") != std::string::npos) quit_ = true;
  }
  std::vector<int> wakes() const override { return screen_.wakes(); }
  std::vector<int> signals() const override { return screen_.signals(); }
  void signalled(Session& s, int number) override {
    if (number == SIGCONT) screen_.reopen();
    draw(s);
  }
  bool wants_end() const override { return quit_; }
  Result<void> finish(Session&) override {
    screen_.close();
    return {};
  }

  static std::vector<OutputKey> keys(bool csv) {
    std::string unknown = csv ? "" : " or null";
    std::vector<OutputKey> all = {
        time_key(), key("cgroup_id", "integer" + unknown, "cgroup (version 2); null: several"),
        key("cgroup", "string", "its path; with --by container or unit their name"),
        key("waits", "integer", "waits for a CPU that ended"),
        key("wait_ns", "integer", "time of waits, also of those that have not ended")};
    for (std::size_t i = 0; i < kParts; i++)
      all.push_back(key(fmt::format("{}_ns", neighbours::parts()[i].key),
                        i == neighbours::kIrq ? "integer" + unknown : "integer",
                        std::string(neighbours::parts()[i].doc)));
    all.push_back(key("unused_ns", "integer" + unknown,
                      "part of the waits in which another CPU that the task may use was idle, or "
                      "its own; null: not known"));
    all.push_back(key("reclaim_own_ns", "integer" + unknown,
                      "time in which its tasks freed memory below a memory limit of the cgroup, or "
                      "of one above"));
    all.push_back(key("reclaim_machine_ns", "integer" + unknown,
                      "time in which its tasks freed memory of the machine"));
    for (auto resource : neighbours::kResources)
      all.push_back(key(fmt::format("pressure_{}_ns", resource), "integer" + unknown,
                        fmt::format("time in which a task of the cgroup, or of one below, lacked "
                                    "the resource, by {}.pressure; null: not known",
                                    resource)));
    return all;
  }

 private:
  std::string name(const Session& s, std::uint64_t cgroup) const {
    if (cgroup == NEIGHBOUR(KERNEL)) return "[kernel]";
    auto& names = s.names.context;
    auto path = names.cgroup_name ? names.cgroup_name(cgroup, CgroupName::path) : std::string();
    if (path.empty()) return fmt::format("cgroup {}", cgroup);
    if (by_ == CgroupName::path) return path;
    auto group = names.cgroup_name(cgroup, by_);
    return group.empty() ? "-" : group;
  }

  /// The limits of this kernel.
  void find_limits(Session& s) {
    approximate_.clear();
    if (!s.kernel.has_field("cfs_rq", "throttled_clock_self_time"))
      approximate_.emplace_back("limit is by the clock of load averages");
    irqs_ = !s.config.given("no-irq");
    reclaim_own_ = s.kernel.tracepoint_args("mm_vmscan_memcg_reclaim_begin") > 0;
    reclaim_machine_ = s.kernel.tracepoint_args("mm_vmscan_direct_reclaim_begin") > 0;
    // Spin locks in tracing programs: as run_delay_hooks().
    unused_ = s.kernel.has_enumerator("bpf_func_id", "BPF_FUNC_loop") && !s.config.given("no-idle");
    set_variable(s, "affinity", unused_);
    for (auto& limit : approximate_) s.limits.push_back(limit);
    if (!unused_) approximate_.emplace_back("unused is not known");
  }

  /// The time lost since the last reading. Waits and turns that have not ended count so far.
  void read(Session& s) {
    until_ns_ = monotonic_ns();
    losses_.clear();
    for (auto* table : {&lost_, &reclaims_}) add_grown(*table);
    auto before = std::move(open_);
    open_ = read_open(s);
    for (auto& [key, ns] : open_) losses_[key].ns += ns;
    for (auto& [key, ns] : before) {
      auto& sum = losses_[key];
      sum.ns -= std::min<std::uint64_t>(sum.ns, ns);
    }
  }

  /// A table of the kernel program.
  struct Counted {
    std::unique_ptr<CounterSource> source;
    CounterDeltas deltas{2};
  };

  void add_grown(Counted& table) {
    CounterSource::Reading none;
    auto now = table.source->read(until_ns_, none);
    auto& deltas = table.deltas;
    if (!table.source->whole()) deltas.complete(now);
    auto grown = deltas.since_last(std::move(now));
    for (auto& [key, last] : table.source->take_out(deltas.idle(), deltas.keys(), until_ns_))
      deltas.gone(key, last);
    for (auto& [bytes, sums] : grown) {
      neighbour_key key{};
      memcpy(&key, bytes.data(), std::min(sizeof key, bytes.size()));
      auto& sum = losses_[{key.victim, key.to}];
      sum.ns += sums[0];
      sum.count += sums[1];
    }
  }

  using Open = std::map<Losses::key_type, std::uint64_t>;

  static Open read_open(Session& s) {
    Open all;
    auto bytes = s.source->pass(kIterator, sizeof(neighbour_open));
    if (!bytes) {
      s.complete(bytes.error());
      return all;
    }
    for (std::size_t at = 0; at + sizeof(neighbour_open) <= bytes->size();
         at += sizeof(neighbour_open)) {
      neighbour_open o{};
      memcpy(&o, bytes->data() + at, sizeof o);
      all[{o.victim, NEIGHBOUR(RAN)}] += o.ran_ns;
      all[{o.victim, NEIGHBOUR(RAN_IRQ)}] += o.irq_ns;
      all[{o.victim, NEIGHBOUR(LIMIT)}] += o.limit_ns;
      for (std::size_t i = 0; i < NEIGHBOUR_CLOCKS; i++)
        if (o.ns[i]) all[{o.victim, o.owners[i]}] += o.ns[i];
    }
    return all;
  }

  static void count(const Session& s, const std::vector<Victim>& rows) {
    for (auto& row : rows) {
      for (std::size_t i = 0; i < kParts; i++) {
        const bool named = i == neighbours::kOthers || i == neighbours::kRealTime;
        const LostMetric metric{&row, i, nullptr, row.ns[i]};
        if (metric.ns && !named) s.exporter->add(s, &metric);
      }
      for (auto& c : row.culprits) {
        const LostMetric metric{&row, c.kind, &c.name, c.ns};
        if (c.kind == neighbours::kOthers || c.kind == neighbours::kRealTime)
          s.exporter->add(s, &metric);
      }
    }
  }

  void show(Session& s, const std::vector<Victim>& rows) {
    const bool text = s.config.format == OutputFormat::text;
    lines_.clear();
    if (text && s.config.schedule.interval > 0 && s.config.schedule.count != 1)
      lines_.push_back(wall_time(until_ns_));
    const auto title = lines_.size();
    const auto top = s.config.rows.top ? s.config.rows.top : text ? kTop : UINT64_MAX;
    name_width_ = name_title().size();
    for (std::size_t i = 0; i < rows.size() && i < top; i++)
      name_width_ = std::max(name_width_, printable(rows[i].name).size());
    name_width_ = std::min(name_width_, kNameWidth);
    if (text) lines_.push_back(titles());
    std::uint64_t waits = 0, wait_ns = 0, unknown_ns = 0;
    for (std::size_t i = 0; i < rows.size(); i++) {
      auto& row = rows[i];
      waits += row.waits;
      wait_ns += row.wait_ns;
      unknown_ns += row.ns[neighbours::kUnknown];
      if (i >= top) continue;
      if (s.config.format == OutputFormat::json)
        json(s, row);
      else if (s.config.format == OutputFormat::csv)
        csv(s, row);
      else
        write(s, row);
    }
    if (s.config.format == OutputFormat::json) total(s, waits, wait_ns, unknown_ns);
    if (screen_.is_open()) {
      draw(s);
      return;
    }
    for (std::size_t i = 0; i < lines_.size(); i++)
      i == title ? s.out.title(lines_[i]) : s.out.line(lines_[i]);
  }

  void draw(Session& s) {
    auto most = static_cast<std::size_t>(std::max(2, terminal_size().rows - 1));
    auto shown = lines_;
    shown.resize(std::min(most, shown.size()));
    s.out.write(screen_.picture(shown));
    s.out.flush();
  }

  static std::size_t width(std::size_t part) {
    return std::max<std::size_t>(6, neighbours::parts()[part].title.size());
  }

  std::string_view name_title() const {
    return by_ == CgroupName::path ? "CGROUP" : by_ == CgroupName::container ? "CONTAINER" : "UNIT";
  }

  /// The first column; on a screen the end of a long name.
  std::string name_cell(std::string_view name) const {
    auto text = printable(name);
    if (screen_.is_open() && text.size() > name_width_)
      text = "..." + text.substr(text.size() - name_width_ + 3);
    return fmt::format("{:<{}}", text, name_width_);
  }

  std::string titles() const {
    auto line = name_cell(name_title()) + "   WAITS  WANTED(ms)";
    for (std::size_t i = 0; i < kParts; i++)
      line += fmt::format(" {:>{}}", neighbours::parts()[i].title, width(i));
    line += " UNUSED  MEMLIM  MEMALL";
    if (by_ == CgroupName::path) line += " PSI-CPU PSI-IO PSI-MEM";
    return line;
  }

  /// A column of numbers; "-": not known.
  static std::string cell(std::optional<double> value, std::size_t width) {
    return value ? fmt::format(" {:>{}.1f}", *value, width) : fmt::format(" {:>{}}", "-", width);
  }

  /// Of the cgroup, in the interval.
  neighbours::Pressure pressure_of(const Victim& row) {
    if (by_ != CgroupName::path || !one_cgroup(row)) return {};
    return pressures_.growth(*row.cgroups.begin(), row.name);
  }

  void write(Session& s, const Victim& row) {
    const auto wanted = row.wanted_ns();
    using Cell = std::optional<double>;
    auto line = name_cell(row.name) +
                fmt::format(" {:>7} {:>11.1f}", row.waits, static_cast<double>(wanted) / 1e6);
    for (std::size_t i = 0; i < kParts; i++)
      line += cell(knows(i) ? Cell(percent(row.ns[i], wanted)) : Cell(), width(i));
    line += cell(unused_ ? Cell(percent(row.unused_ns, wanted)) : Cell(), 6);
    for (auto [known, ns] : {std::pair(reclaim_own_, row.reclaim_own_ns),
                             std::pair(reclaim_machine_, row.reclaim_machine_ns)})
      line += cell(known ? Cell(static_cast<double>(ns) / 1e6) : Cell(), 7);
    if (by_ == CgroupName::path) {
      auto pressure = pressure_of(row);
      for (std::size_t i = 0; i < pressure.size(); i++)
        line += cell(pressure[i] ? Cell(percent(*pressure[i], until_ns_ - from_ns_)) : Cell(),
                     i == 1 ? 6 : 7);
    }
    lines_.push_back(line);
    const auto most = s.config.number("culprits", kCulprits);
    std::uint64_t shown = 0;
    for (auto& c : row.culprits) {
      if (c.kind == neighbours::kItself || c.kind == neighbours::kKernel) continue;
      if (shown++ >= most) break;
      if (!s.config.given("culprits") && percent(c.ns, wanted) < kLeastShare) break;
      lines_.push_back(fmt::format("    {:>5.1f} % {:>9.1f} ms  to {}{}", percent(c.ns, wanted),
                                   static_cast<double>(c.ns) / 1e6,
                                   c.kind == neighbours::kRealTime ? "real-time tasks of " : "",
                                   printable(c.name)));
    }
  }

  bool knows(std::size_t part) const { return part != neighbours::kIrq || irqs_; }

  void json(Session& s, const Victim& row) {
    JsonLine line("victim", s.tool.name);
    line.text("time", iso_time(until_ns_));
    line.number_if(one_cgroup(row), "cgroup_id", one_cgroup(row) ? *row.cgroups.begin() : 0);
    line.text("cgroup", row.name).number("waits", row.waits).number("wait_ns", row.wait_ns);
    for (std::size_t i = 0; i < kParts; i++)
      line.number_if(knows(i), fmt::format("{}_ns", neighbours::parts()[i].key), row.ns[i]);
    line.number_if(unused_, "unused_ns", row.unused_ns);
    line.number_if(reclaim_own_, "reclaim_own_ns", row.reclaim_own_ns);
    line.number_if(reclaim_machine_, "reclaim_machine_ns", row.reclaim_machine_ns);
    auto pressure = pressure_of(row);
    for (std::size_t i = 0; i < pressure.size(); i++)
      line.number_if(pressure[i].has_value(),
                     fmt::format("pressure_{}_ns", neighbours::kResources[i]),
                     pressure[i].value_or(0));
    line.key("culprits").begin_array();
    for (auto& c : row.culprits) {
      line.begin_object().text("cgroup", c.name).text("part", neighbours::parts()[c.kind].key);
      line.number("time_ns", c.ns).end_object();
    }
    line.end_array();
    s.out.line(line.finish());
  }

  static bool one_cgroup(const Victim& row) {
    return row.cgroups.size() == 1 && *row.cgroups.begin() != NEIGHBOUR(KERNEL);
  }

  void csv(Session& s, const Victim& row) {
    auto number = [](bool known, std::uint64_t n) { return known ? std::to_string(n) : ""; };
    auto line = fmt::format("{},{},{},{},{}", iso_time(until_ns_),
                            number(one_cgroup(row), *row.cgroups.begin()), csv_field(row.name),
                            row.waits, row.wait_ns);
    for (std::size_t i = 0; i < kParts; i++) line += "," + number(knows(i), row.ns[i]);
    line += "," + number(unused_, row.unused_ns);
    line += "," + number(reclaim_own_, row.reclaim_own_ns) + "," +
            number(reclaim_machine_, row.reclaim_machine_ns);
    for (auto& total : pressure_of(row)) line += "," + number(total.has_value(), total.value_or(0));
    s.out.line(line);
  }

  void total(Session& s, std::uint64_t waits, std::uint64_t wait_ns,
             std::uint64_t unknown_ns) const {
    std::uint64_t counts[LEDGER_CAUSES] = {};
    s.source->add_ledger(counts);
    JsonLine line("total", s.tool.name);
    line.text("time", iso_time(until_ns_)).number("wall_ns", until_ns_ - from_ns_);
    line.number("waits", waits).number("wait_ns", wait_ns).number("unknown_ns", unknown_ns);
    line.number("unmatched", counts[LEDGER_UNMATCHED]).texts("approximate", approximate_);
    s.out.line(line.finish());
  }

  CgroupName by_ = CgroupName::path;
  Counted lost_, reclaims_;
  neighbours::Pressures pressures_;
  std::vector<std::string> approximate_;
  std::vector<std::string> lines_;  ///< of the report in text
  Screen screen_;
  std::size_t name_width_ = 0;
  bool reclaim_own_ = true, reclaim_machine_ = true;
  bool irqs_ = true, unused_ = true, quit_ = false;
  Losses losses_;
  Open open_;  ///< in `losses_`, and not yet in the counters
  std::uint64_t from_ns_ = 0, until_ns_ = 0;
  bool ended_ = false;
};

class NeighboursKind : public ReportKind {
 public:
  std::string_view name() const override { return "neighbours"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<NeighboursReporter>();
  }
  bool can_be_recorded() const override { return true; }

  Result<void> check(Config& c) const override {
    if (c.given("screen") && !c.schedule.interval) c.schedule.interval = 1;
    return {};
  }

  MetricShape metrics(const Config&) const override {
    return {.kind = MetricShape::rows, .fields = metric_fields()};
  }

  std::vector<JsonKind> json() const override {
    JsonKind victim{
        "victim", "one per cgroup, those that lost the most first", {type_key("victim")}};
    for (auto& k : NeighboursReporter::keys(false)) victim.keys.push_back(k);
    victim.keys.push_back(key("culprits", "array of objects", "tasks that had the CPU, by cgroup",
                              "",
                              {key("cgroup", "string", "their cgroup"),
                               key("part", "string", "itself, others, realtime or kernel"),
                               key("time_ns", "integer", "part of the waits")}));
    return {victim,
            {"total",
             "one at the end of each report",
             {type_key("total"), time_key(),
              key("wall_ns", "integer", "time since tracing began, or since the last report"),
              key("waits", "integer", "waits for a CPU that ended"),
              key("wait_ns", "integer", "their time"),
              key("unknown_ns", "integer", "part of it that is not known"),
              key("unmatched", "integer", "events that were not seen, since tracing began"),
              key("approximate", "array of strings", "what is not exact on this kernel")}}};
  }

  std::vector<OutputKey> csv() const override { return NeighboursReporter::keys(true); }

  void manual(Manual& m) const override {
    m.prose(
        "A row is a cgroup. WANTED is the time in which its tasks had a CPU or waited for one; "
        "the columns from RUN to UNKNOWN are its parts in percent, and add up to 100. Rows that "
        "lost the most come first. The lines below a row name the cgroups that had the CPU "
        "instead: those with 1 % or more, unless --culprits is given.");
    m.paragraph();
    for (auto& part : neighbours::parts()) m.prose(fmt::format("{}: {}.", part.title, part.doc));
    m.prose(
        "UNUSED: part of the waits in which a CPU that the task may use was idle, also its own. "
        "This time is in other columns, too, by who had the CPU on which the task waited.");
    m.prose(
        "MEMLIM, MEMALL: milliseconds in which its tasks freed memory themselves before they got "
        "some, below a memory limit of the cgroup or of one above (memory.max, memory.high), or of "
        "the whole machine. They may run or wait meanwhile, so this time is in other columns, too. "
        "Who used the memory is not known.");
    m.prose(
        "PSI-CPU, PSI-IO, PSI-MEM: the share of the interval in which at least one task of the "
        "cgroup, or of one below it, lacked the resource, by the kernel's own account (the totals "
        "of \"some\" in the cgroup's cpu.pressure, io.pressure and memory.pressure). \"-\": the "
        "kernel has none.");
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(NeighboursReport) {
  return std::make_shared<NeighboursKind>();
}

}  // namespace coretap
