#include "tools/cpu/walltime/report_accounts.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "coretap/syscalls.hpp"
#include "cpu/walltime.h"
#include "metrics/exporter.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/own_activity.hpp"
#include "reports/reporter.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/wait_rules.hpp"
#include "tools/cpu/walltime/accounts.hpp"
#include "tools/cpu/walltime/graph.hpp"
#include "tools/cpu/walltime/latency.hpp"
#include "tools/cpu/walltime/states.hpp"
#include "walltime.skel.h"

namespace coretap {

namespace {

constexpr ProgramName kIterator = progs::on_account;
constexpr std::uint64_t kMinWait = 100;  // us
constexpr std::uint64_t kTop = 20;       // rows of text without --top
constexpr std::chrono::milliseconds kLastRecords{100};

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

/// "61 ms", "120 us".
std::string short_time(std::uint64_t ns) {
  if (ns >= 10'000'000'000) return fmt::format("{:.0f} s", seconds(ns));
  if (ns >= 1'000'000'000) return fmt::format("{:.1f} s", seconds(ns));
  if (ns >= 1'000'000) return fmt::format("{:.0f} ms", static_cast<double>(ns) / 1e6);
  return fmt::format("{:.0f} us", static_cast<double>(ns) / 1e3);
}

/// The time of a row in one state, for exporters.
struct WallMetric {
  task_id who;
  std::size_t state;
  std::uint64_t count, ns;
};

std::vector<Field> metric_fields() {
  auto row = [](const void* record) -> auto& { return *static_cast<const WallMetric*>(record); };
  static const auto kRow = row;
  return {
      Field{"state", "STATE", as::text, "state of the time",
            [](const void* record, const FieldContext&) -> Value {
              return wall::states()[kRow(record).state].name;
            }}
          .bounded(),
      Field{"comm", "COMM", as::comm, "name of the process",
            [](const void* record, const FieldContext&) -> Value {
              return std::string(text_in(kRow(record).who.comm));
            }}
          .capped(),
      Field{"cgroup", "CGROUP", as::rest, "path of the cgroup",
            [](const void* record, const FieldContext& context) -> Value {
              return context.cgroup_name
                         ? context.cgroup_name(kRow(record).who.cgroup, CgroupName::path)
                         : std::string();
            }}
          .capped(),
      field<&WallMetric::count>("stays", "STAYS", as::number, "number of stays in the state")
          .counter(),
      field<&WallMetric::ns>("time_ns", "TIME", as::microseconds, "time in the state").counter()};
}

class AccountsReporter : public Reporter {
 public:
  void configure(Session& s) override {
    own_.configure(s);
    auto& c = s.config;
    by_ = wall::By(c.rows.by);
    accounts_ = {};
    accounts_.by_thread(by_.threads());
    set_variable(s, "by_thread", by_.threads());
    set_variable(s, "min_wait_ns", c.number("min-wait", kMinWait) * 1000);
    auto& tasks = c.tasks;
    set_variable(s, "filters_by_ids",
                 tasks.uids.empty() && tasks.comms.empty() && tasks.not_comms.empty() &&
                     tasks.names.empty() && tasks.cgroup.empty());
    graph_.configure(s);
    latency_.configure(s);
    bool user = graph_.wanted() && !c.given("kernel-stacks-only");
    set_variable(s, "graph", graph_.wanted());
    set_variable(s, "stack_user", user);
    names_.configure(s,
                     {.offsets = c.given("offset"),
                      .located = StackFiles::need_places(c) || c.given("diff"),
                      .lines = c.given("lines")},
                     user);
    find_limits(s);
  }

  void size_maps(Session& s) override {
    StackNames::size_maps(s);
    latency_.size_maps(s);
    if (auto* map = s.map(maps::stacks)) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override {
    if (auto r = graph_.ready(s); !r) return r;
    return names_.ready(s);
  }
  Result<void> open(Session& s) override {
    if (auto r = s.source->open_iterator(kIterator); !r) return r;
    return graph_.open(s);
  }

  void begin(Session& s) override {
    from_ns_ = s.began_ns;
    graph_.begin(s.began_ns);
    if (s.config.format != OutputFormat::csv || !table(s)) return;
    std::string line = "time,pid,tid,comm,uid,cgroup_id,cgroup,container,unit,threads,time_ns";
    for (auto& state : wall::states()) line += fmt::format(",{0}_ns,{0}_count", state.key);
    s.out.line(line + ",longest_ns,longest_state");
  }

  void record(Session& s, const void* data, std::size_t size) override {
    if (size == sizeof(walltime_account))
      take(data);
    else
      names_.take(s, data, size);
  }

  void ends(Session& s) override {
    close(s);
    pass(s);
  }

  void report(Session& s) override {
    if (!closed_) {
      if (s.config.schedule.count && ++reports_ >= s.config.schedule.count) close(s);
      pass(s);
      // Threads that end have sent their accounts before they are missing in the iteration.
      if (closed_) s.source->take_records(kLastRecords, 0);
    }
    auto rows = collect(s);
    if (graph_.wanted())
      graph_.draw(
          s, names_, [&](auto& cell) { return state_of(s, cell); }, closed_);
    if (s.exporter)
      count(s, rows);
    else if (table(s))
      show(s, rows);
    if (with_stacks(s)) stacks(s);
    if (closed_) graph_.fold(s);
    names_.next_report();
    from_ns_ = until_ns_;
  }

  double poll_seconds() const override { return names_.poll_seconds(); }
  void poll(Session& s) override {
    names_.poll(s);
    if (closed_ || !graph_.part_is_over(monotonic_ns())) return;
    pass(s);
    collect(s);
  }
  std::vector<int> wakes() const override { return names_.wakes(); }

  Result<void> finish(Session& s) override { return graph_.finish(s); }
  bool keeps_file() const override { return graph_.keeps_file(); }

 private:
  /// Graphs replace the table, as in tools that have only stacks.
  bool table(const Session& s) const {
    return !graph_.compares() && (s.config.format != OutputFormat::text || !graph_.wanted());
  }

  /// With graphs, JSON has the stacks of each report, too, and a recording what they need.
  bool with_stacks(const Session& s) const {
    return graph_.wanted() && !graph_.compares() &&
           (s.recorder || s.config.format == OutputFormat::json);
  }

  void stacks(Session& s) {
    static const Frames kNone;
    for (auto& [of, sum] : std::exchange(stacks_, {})) {
      auto& [comm, pid, state, cell] = of;
      auto& kernel = cell.stack ? names_.kernel(s, cell.stack).frames : kNone;
      auto& user = cell.user ? names_.user(s, cell.user, static_cast<pid_t>(pid)).frames : kNone;
      if (s.config.format != OutputFormat::json) continue;
      JsonLine line("stack", s.tool.name);
      line.text("comm", comm).number("pid", pid).text("state", wall::states()[state].name);
      line.texts("kernel_stack", kernel).texts("user_stack", user);
      s.out.line(line.number("total_ns", sum.ns).number("count", sum.count).finish());
    }
  }

  /// The time since the last call, by row.
  std::vector<wall::Row> collect(Session& s) {
    s.source->each_typed_entry<walltime_row, wall_sum>(
        maps::wait_rows, [&](auto& row, auto& sum) { accounts_.take_row(row, sum); });
    auto rows = add_up(s, accounts_.report(closed_));
    graph_.end_part(until_ns_);
    return rows;
  }

  /// For exporters.
  static void count(const Session& s, const std::vector<wall::Row>& rows) {
    for (auto& row : rows)
      for (std::size_t i = 0; i < row.sums.size(); i++) {
        const WallMetric metric{row.who, i, row.sums[i].count, row.sums[i].ns};
        if (metric.count || metric.ns) s.exporter->add(s, &metric);
      }
  }
  /// States that this kernel cannot distinguish.
  void find_limits(Session& s) {
    approximate_.clear();
    if (!s.kernel.has_field("cfs_rq", "throttled_clock_self_time"))
      approximate_.emplace_back("queue.limit is part of queue.busy");
    if (!s.kernel.has_field("rq", "prev_steal_time_rq"))
      approximate_.emplace_back("cpu.stolen is part of cpu");
    // Spin locks in tracing programs: as run_delay_hooks().
    bool idle = s.kernel.has_enumerator("bpf_func_id", "BPF_FUNC_loop");
    set_variable(s, "affinity", idle && !s.config.given("no-idle"));
    if (!idle) approximate_.emplace_back("queue.idle is part of queue.busy");
    if (s.kernel.tracepoint_args("contention_begin") <= 0)
      approximate_.emplace_back(
          "short waits for locks of the kernel have the reasons of their callers");
  }

  /// From now on nothing is added to the accounts.
  void close(Session& s) {
    until_ns_ = monotonic_ns();
    set_live(s, "account_until", &until_ns_, sizeof until_ns_);
    closed_ = true;
  }

  void take(const void* data) {
    walltime_account account;
    memcpy(&account, data, sizeof account);
    if (account.until_ns > account.begin_ns) accounts_.take(account);
  }

  void pass(Session& s) {
    if (!closed_) until_ns_ = monotonic_ns();
    auto bytes = s.source->pass(kIterator, sizeof(walltime_account));
    if (!bytes) {
      s.complete(bytes.error());
      return;
    }
    for (std::size_t at = 0; at < bytes->size(); at += sizeof(walltime_account))
      take(bytes->data() + at);
  }

  std::size_t state_of(Session& s, const WallCell& cell) {
    if (cell.witness < WALL_STATES) return cell.witness;
    auto [known, is_new] = reasons_.try_emplace(cell);
    if (!is_new) return known->second;
    static const Frames kNone;
    auto& frames = cell.stack ? names_.kernel(s, cell.stack).frames : kNone;
    return known->second = WALL_STATES + reason_of_wait(cell.witness, frames);
  }

  /// The rows to show, the most active first.
  std::vector<wall::Row> add_up(Session& s, const std::vector<WallOwner>& owners) {
    std::map<std::string, wall::Row> all;
    others_.clear();
    const auto other = WALL_STATES + wait_reason("other");
    for (auto& o : owners) {
      if (!o.time_ns && !o.ended) continue;
      if (own_.is(o.who.pid)) {
        s.ledger.count[LEDGER_FILTERED] += o.threads;
        continue;
      }
      if (graph_.wanted()) graph_.add(o, by_.cgroup ? cgroup_of(s, o.who) : "");
      if (!o.time_ns) continue;
      auto& row = all[key_of(s, o)];
      if (!row.threads || o.who.tid == o.who.pid) row.who = o.who;
      row.threads += o.threads;
      row.time_ns += o.time_ns;
      for (auto& [cell, sum] : o.cells) {
        auto state = state_of(s, cell);
        add(row.sums[state], sum);
        if (with_stacks(s) && sum.ns &&
            (s.config.given("work") || wall::states()[state].column != wall::kWork))
          add(stacks_[{text_in(o.who.comm), o.who.pid, state, {0, cell.stack, cell.user}}], sum);
        if (cell.stack && state == other) add(others_[cell.stack], sum);
      }
    }
    forget_ended(s, owners);
    for (auto& [key, row] : all) s.ledger.shown += row.threads;
    std::vector<wall::Row> rows;
    rows.reserve(all.size());
    for (auto& [key, row] : all) rows.push_back(std::move(row));
    std::ranges::sort(rows, [](auto& a, auto& b) {
      auto x = a.active_ns(), y = b.active_ns();
      return x != y ? x > y : std::pair(a.who.pid, a.who.tid) < std::pair(b.who.pid, b.who.tid);
    });
    return rows;
  }

  void forget_ended(Session& s, const std::vector<WallOwner>& owners) const {
    if (closed_) return;
    for (auto& o : owners) {
      if (!o.ended) continue;
      for (auto* cells : {&o.cells, &o.details})
        for (auto& [cell, sum] : *cells) {
          walltime_row row{
              .owner = o.owner, .witness = cell.witness, .stack = cell.stack, .user = cell.user};
          s.source->erase(maps::wait_rows, &row);
        }
    }
  }

  void show(Session& s, const std::vector<wall::Row>& rows) {
    const bool text = s.config.format == OutputFormat::text;
    std::uint64_t threads = 0, threads_ns = 0, states_ns = 0;
    for (auto& row : rows) {
      threads += row.threads;
      threads_ns += row.time_ns;
      states_ns += row.states_ns();
    }
    if (text && s.config.schedule.interval > 0 && s.config.schedule.count != 1)
      s.out.line(wall_time(until_ns_));
    const bool latency = latency_.wanted() && s.config.format != OutputFormat::csv;
    if (text && !latency) s.out.title(titles());
    const auto top = s.config.rows.top ? s.config.rows.top : text ? kTop : UINT64_MAX;
    for (std::size_t i = 0; i < rows.size() && i < top && !(text && latency); i++) {
      auto& row = rows[i];
      if (s.config.format == OutputFormat::json)
        json(s, row);
      else if (s.config.format == OutputFormat::csv)
        csv(s, row);
      else
        write(s, row);
    }
    if (latency)
      latency_.show(s, iso_time(until_ns_), [&](auto& cell) { return state_of(s, cell); });
    if (s.config.given("unknown") && s.config.format != OutputFormat::csv) unknown(s);
    if (text)
      s.out.line(fmt::format("{}: {} {}, {:.3f} s: states add up to {:.3f} %", s.tool.name, threads,
                             threads == 1 ? "thread" : "threads", seconds(threads_ns),
                             threads_ns ? 100 * seconds(states_ns) / seconds(threads_ns) : 100.0));
    else if (s.config.format == OutputFormat::json)
      total(s, threads, threads_ns, states_ns);
  }

  std::string titles() const {
    std::string line;
    if (by_.pid()) line += "PID     ";
    if (by_.thread) line += "TID     ";
    if (by_.named()) line += "COMM             ";
    if (by_.uid) line += "UID      ";
    line += by_.thread ? "  TIME(s)" : "THREADS   TIME(s)";
    for (auto title : wall::kTitles) line += fmt::format(" {:>6}", title);
    if (by_.thread) line += "  LONGEST";
    for (auto& [key, which] : kCgroupNames)
      if (by_.shows(which)) line += fmt::format("  {}", title_of(which));
    return line;
  }

  void write(Session& s, const wall::Row& row) const {
    std::string line;
    if (by_.pid()) line += fmt::format("{:<7} ", row.who.pid);
    if (by_.thread) line += fmt::format("{:<7} ", row.who.tid);
    if (by_.named()) line += fmt::format("{:<16} ", printable(text_in(row.who.comm)));
    if (by_.uid) line += fmt::format("{:<8} ", row.who.uid);
    if (!by_.thread) line += fmt::format("{:>7} ", row.threads);
    line += fmt::format("{:>9.3f}", seconds(row.time_ns));
    for (auto tenths : wall::shares(row))
      line += fmt::format(" {:>4}.{}", tenths / 10, tenths % 10);
    auto longest = row.longest();
    if (by_.thread && row.sums[longest].longest_ns)
      line += fmt::format("  {} {}", short_time(row.sums[longest].longest_ns),
                          wall::states()[longest].name);
    for (auto& [key, which] : kCgroupNames)
      if (by_.shows(which)) line += "  " + printable(name_of(s, row.who, which));
    s.out.line(line);
    if (s.config.given("reasons")) reasons(s, row);
  }

  /// The row of an owner: the values of the keys of --by.
  std::string key_of(const Session& s, const WallOwner& o) const {
    if (by_.thread) return std::to_string(o.owner);
    std::string all;
    auto add_key = [&](bool wanted, const std::string& value) {
      if (wanted) all += value + '\n';
    };
    // Threads have separate accounts where a row may not be a whole process.
    add_key(by_.process, fmt::format("{} {}", o.who.pid, by_.threads() ? 0 : o.owner));
    add_key(by_.comm, std::string(text_in(o.who.comm)));
    add_key(by_.uid, std::to_string(o.who.uid));
    add_key(by_.cgroup, std::to_string(o.who.cgroup));
    add_key(by_.container, name_of(s, o.who, CgroupName::container));
    add_key(by_.unit, name_of(s, o.who, CgroupName::unit));
    return all;
  }

  void reasons(Session& s, const wall::Row& row) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < row.sums.size(); i++)
      if (row.sums[i].ns) order.push_back(i);
    std::ranges::stable_sort(order,
                             [&](auto a, auto b) { return row.sums[a].ns > row.sums[b].ns; });
    const auto all = std::max<std::uint64_t>(row.states_ns(), 1);
    for (auto i : order) {
      auto& sum = row.sums[i];
      s.out.line(fmt::format("  {:<20} {:>5.1f} % {:>9.3f} s {:>8} {:<5} longest {}",
                             wall::states()[i].name, 100 * seconds(sum.ns) / seconds(all),
                             seconds(sum.ns), sum.count, sum.count == 1 ? "time," : "times,",
                             short_time(sum.longest_ns)));
    }
  }

  static std::string name_of(const Session& s, const task_id& who, CgroupName which) {
    auto& names = s.names.context;
    return names.cgroup_name ? names.cgroup_name(who.cgroup, which) : std::string();
  }
  static std::string_view title_of(CgroupName which) {
    return which == CgroupName::path        ? "CGROUP"
           : which == CgroupName::container ? "CONTAINER"
                                            : "UNIT";
  }
  static std::string cgroup_of(const Session& s, const task_id& who) {
    auto path = name_of(s, who, CgroupName::path);
    return path.empty() ? fmt::format("cgroup {}", who.cgroup) : path;
  }

  void json(Session& s, const wall::Row& row) const {
    JsonLine line("account", s.tool.name);
    line.text("time", iso_time(until_ns_));
    line.number_if(by_.pid(), "pid", row.who.pid).number_if(by_.thread, "tid", row.who.tid);
    line.text_if(by_.named(), "comm", text_in(row.who.comm));
    line.number_if(by_.pid() || by_.uid, "uid", row.who.uid);
    line.number_if(by_.knows(CgroupName::path), "cgroup_id", row.who.cgroup);
    for (auto& [key, which] : kCgroupNames) {
      auto name = by_.knows(which) ? name_of(s, row.who, which) : "";
      line.text_if(!name.empty(), key, name);
    }
    line.number("threads", row.threads).number("time_ns", row.time_ns);
    for (std::size_t i = 0; i < row.sums.size(); i++)
      line.number(wall::states()[i].key + "_ns", row.sums[i].ns)
          .number(wall::states()[i].key + "_count", row.sums[i].count);
    auto longest = row.longest();
    line.number("longest_ns", row.sums[longest].longest_ns);
    line.text_if(row.sums[longest].longest_ns != 0, "longest_state", wall::states()[longest].name);
    s.out.line(line.finish());
  }

  void csv(Session& s, const wall::Row& row) const {
    auto number = [](bool known, std::uint64_t n) { return known ? std::to_string(n) : ""; };
    auto line = fmt::format("{},{},{},{},{},{}", iso_time(until_ns_),
                            number(by_.pid(), row.who.pid), number(by_.thread, row.who.tid),
                            by_.named() ? csv_field(text_in(row.who.comm)) : "",
                            number(by_.pid() || by_.uid, row.who.uid),
                            number(by_.knows(CgroupName::path), row.who.cgroup));
    for (auto& [key, which] : kCgroupNames)
      line += "," + csv_field(by_.knows(which) ? name_of(s, row.who, which) : "");
    line += fmt::format(",{},{}", row.threads, row.time_ns);
    for (auto& sum : row.sums) line += fmt::format(",{},{}", sum.ns, sum.count);
    auto longest = row.longest();
    line += fmt::format(",{},{}", row.sums[longest].longest_ns,
                        row.sums[longest].longest_ns ? wall::states()[longest].name : "");
    s.out.line(line);
  }

  /// The stacks of waits without a reason, the largest last.
  void unknown(Session& s) {
    std::vector<std::pair<std::uint64_t, wall_sum>> all(others_.begin(), others_.end());
    std::ranges::sort(all, [](auto& a, auto& b) { return a.second.ns < b.second.ns; });
    for (auto& [stack, sum] : all) {
      auto& frames = names_.kernel(s, stack).frames;
      if (s.config.format == OutputFormat::json) {
        JsonLine line("unknown", s.tool.name);
        line.texts("kernel_stack", frames).number("time_ns", sum.ns).number("count", sum.count);
        s.out.line(line.finish());
        continue;
      }
      for (auto& frame : frames) s.out.line(frame_line(frame));
      s.out.line(fmt::format("        {:.3f} s, {} {}\n", seconds(sum.ns), sum.count,
                             sum.count == 1 ? "time" : "times"));
    }
  }

  void total(Session& s, std::uint64_t threads, std::uint64_t threads_ns,
             std::uint64_t states_ns) const {
    std::uint64_t counts[LEDGER_CAUSES] = {};
    s.source->add_ledger(counts);
    JsonLine line("total", s.tool.name);
    line.text("time", iso_time(until_ns_)).number("wall_ns", until_ns_ - from_ns_);
    line.number("threads", threads).number("threads_ns", threads_ns);
    line.number("states_ns", states_ns).number("unmatched", counts[LEDGER_UNMATCHED]);
    line.texts("approximate", approximate_);
    s.out.line(line.finish());
  }

  static constexpr std::pair<std::string_view, CgroupName> kCgroupNames[] = {
      {"cgroup", CgroupName::path},
      {"container", CgroupName::container},
      {"unit", CgroupName::unit}};

  OwnActivity own_;
  StackNames names_;
  WallGraph graph_;
  WallLatency latency_;
  Accounts accounts_;
  std::map<WallCell, std::size_t> reasons_;   ///< states of waits
  std::map<std::uint64_t, wall_sum> others_;  ///< waits without a reason, by stack
  /// Since the last report: command, process, state and stacks.
  std::map<std::tuple<std::string, std::uint32_t, std::size_t, WallCell>, wall_sum> stacks_;
  std::vector<std::string> approximate_;
  wall::By by_;
  std::uint64_t from_ns_ = 0, until_ns_ = 0, reports_ = 0;
  bool closed_ = false;
};

/// The keys that JSON and CSV share.
std::vector<OutputKey> keys(const std::string& unknown) {
  std::vector<OutputKey> all = {
      time_key(),
      key("pid", "integer" + unknown, "process; null: --by has neither process nor thread")
          .as(Meaning::id),
      key("tid", "integer" + unknown, "thread; null: --by does not have it").as(Meaning::id),
      key("comm", "string" + unknown, "its name; of a process that of its first thread")
          .as(Meaning::label),
      key("uid", "integer" + unknown, "user id").as(Meaning::id),
      key("cgroup_id", "integer" + unknown, "cgroup (version 2)").as(Meaning::id),
      key("cgroup", "string" + unknown, "its path").as(Meaning::label),
      key("container", "string" + unknown, "container of the cgroup").as(Meaning::label),
      key("unit", "string" + unknown, "systemd unit of the cgroup").as(Meaning::label),
      key("threads", "integer", "threads, with those that have ended").as(Meaning::other),
      key("time_ns", "integer", "time of these threads, which all states add up to")
          .as(Meaning::sum)};
  for (auto& state : wall::states()) {
    const auto count = state.key + "_count";
    all.push_back(key(state.key + "_ns", "integer", state.doc).as(Meaning::sum, count));
    all.push_back(key(count, "integer", "how often").as(Meaning::sum));
  }
  all.push_back(key("longest_ns", "integer", "longest stay off the CPU since tracing began")
                    .as(Meaning::other));
  all.push_back(key("longest_state", "string" + unknown, "in which state").as(Meaning::other));
  return all;
}

class AccountsKind : public ReportKind {
 public:
  std::string_view name() const override { return "accounts"; }
  bool can_be_recorded() const override { return true; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<AccountsReporter>();
  }
  bool kernel_symbols() const override { return true; }
  bool names_processes() const override { return true; }
  std::uint64_t ring_bytes(const Config&) const override { return 2 << 20; }
  std::string_view ring_doc() const override {
    return "bytes of the buffer for the accounts of threads that end";
  }

  MetricShape metrics(const Config&) const override {
    return {.kind = MetricShape::rows, .fields = metric_fields()};
  }

  std::vector<JsonKind> json() const override {
    JsonKind account{"account", "one per row, the most active first", {type_key("account")}};
    for (auto& k : keys(" or null")) account.keys.push_back(k);
    auto changes = WallComparison::json();
    return {
        account,
        changes[0],
        changes[1],
        WallLatency::json(),
        {"unknown",
         "with --unknown, one for each kernel stack of wait.other",
         {type_key("unknown"), kernel_stack_key(), key("time_ns", "integer", "sum of the times"),
          key("count", "integer", "how often")}},
        {"stack",
         "with --svg, --pprof or --folded, after the rows: one for each state and stack; without "
         "those of WORK unless --work is given",
         {type_key("stack"), key("comm", "string", "command name"),
          key("pid", "integer", "process"),
          key("state", "string", "name of the state").as(Meaning::label), kernel_stack_key(),
          key("user_stack", "array of strings", "user stack, the innermost function first"),
          key("total_ns", "integer", "sum of the times").as(Meaning::sum, "count"),
          key("count", "integer", "how often").as(Meaning::sum)}},
        {"total",
         "one at the end of each report",
         {type_key("total"), time_key(),
          key("wall_ns", "integer", "time since tracing began, or since the last report"),
          key("threads", "integer", "number of threads"),
          key("threads_ns", "integer", "time of all threads"),
          key("states_ns", "integer", "time of all states"),
          key("unmatched", "integer", "events that were not seen, since tracing began"),
          key("approximate", "array of strings", "states that this kernel cannot distinguish")}}};
  }

  std::vector<OutputKey> csv() const override { return keys(""); }

  void manual(Manual& m) const override {
    m.prose(
        "A row has the number of threads and their time (TIME), and the share of each kind of "
        "state in percent of it; shares add up to 100. Rows with the most time outside of WORK "
        "come first. The last line says what the states add up to: 100 %, unless accounts were "
        "lost.");
    m.paragraph();
    m.prose(
        "CPU: cpu, cpu.irq, cpu.stolen. QUEUE: queue.busy, queue.idle. LIMIT: queue.limit. DISK, "
        "MEMORY, LOCK, PEER (someone else must answer) and WORK (nothing to do): waits of these "
        "kinds. OTHER: waits within the kernel, stopped, traced, frozen, unknown, and wait.other.");
    m.paragraph();
    m.prose(
        "With --svg, --pprof or --folded the time is shown by stacks, with its states as the "
        "innermost frames; with --by-state they are the outermost ones. Waits of --min-wait or "
        "longer have the stacks with which the thread left the CPU; shorter ones are in [short "
        "waits]. Time on a CPU is divided by samples, 49 per second and CPU: cpu.user and "
        "cpu.kernel; that of a process without samples by those of others with its name, and "
        "without any it is cpu. Time in which it had nothing to do (WORK) is left "
        "out unless --work is given.");
    m.paragraph();
    WallComparison::manual(m);
    m.paragraph();
    StackFiles::manual(m);
    m.paragraph();
    m.prose("These are the states.");
    for (auto& state : wall::states()) {
      m.paragraph();
      m.prose(fmt::format("{}: {}.", state.name, state.doc));
    }
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(AccountsReport) {
  return std::make_shared<AccountsKind>();
}

}  // namespace coretap
