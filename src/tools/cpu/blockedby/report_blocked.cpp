#include "tools/cpu/blockedby/report_blocked.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bpf/libbpf.h>
#include <fmt/format.h>

#include "blockedby.skel.h"
#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/own_activity.hpp"
#include "reports/reporter.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/wait_rules.hpp"
#include "text/names.hpp"
#include "tools/cpu/blockedby/kinds.hpp"

namespace coretap {

namespace {

constexpr ProgramName kIterator = progs::on_waiting;
constexpr std::size_t kMostOwners = 16;  // of a chain

using RowId = std::uint64_t;

struct Sum {
  std::uint64_t total_ns = 0, count = 0, longest_ns = 0;
};

struct Shown {
  RowId id;
  const blockedby_key* key;
  Sum sum;
};

std::string id_of(const stack_party& p) {
  if (!p.tid || p.tid == p.tgid) return std::to_string(p.tgid);
  return p.tgid ? fmt::format("{}/{}", p.tgid, p.tid) : std::to_string(p.tid);
}

/// One task in a chain: the owner of what the one before it waits for.
struct Owner {
  const blockedby_key* of;    ///< the wait that it is the owner in
  const blockedby_key* wait;  ///< its own wait meanwhile; null: it mostly did not wait
  bool cycle = false;         ///< it waits for a task above it
};

void append(std::vector<OutputKey>& to, const std::vector<OutputKey>& keys) {
  to.insert(to.end(), keys.begin(), keys.end());
}

std::vector<OutputKey> waiter_keys() {
  return {key("comm", "string", "command name of the waiting thread"),
          key("pid", "integer", "its process"), key("tid", "integer", "its thread id"),
          key("still_waiting", "boolean", "the wait had not ended when tracing did")};
}

std::vector<OutputKey> sum_keys() {
  return {key("count", "integer", "waits"),
          key("max_ns", "integer", "the longest since tracing began"),
          key("total_ns", "integer", "sum of the times")};
}

class BlockedReporter : public Reporter {
 public:
  void configure(Session& s) override {
    own_.configure(s);
    set_variable(s, "stack_kernel", true);
    bool user = !s.config.given("kernel-stacks-only");
    set_variable(s, "stack_user", user);
    names_.configure(s, {.offsets = false, .modules = s.config.given("verbose")}, user);
    tell_interrupts(s);
    for (auto name : {"futex", "futex_wait", "futex_wake", "flock", "fcntl"})
      set_variable(s, std::string("call_") + name, blocked::call_index(name));
    all_ = s.config.given("all");
  }

  void size_maps(Session& s) override {
    StackNames::size_maps(s);
    if (auto* map = s.map(maps::stacks)) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override { return names_.ready(s); }
  Result<void> open(Session& s) override {
    auto* program =
        s.object ? bpf_object__find_program_by_name(s.object.get(), kIterator.c_str()) : nullptr;
    if (!program || bpf_program__fd(program) < 0) return {};
    adds_waits_ = true;
    return s.source->open_iterator(kIterator);
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    std::string line;
    for (auto& k : csv_keys()) line += (line.empty() ? "" : ",") + k.name;
    s.out.line(line);
  }

  void record(Session& s, const void* data, std::size_t size) override {
    names_.take(s, data, size);
  }

  double poll_seconds() const override { return names_.poll_seconds(); }
  void poll(Session& s) override { names_.poll(s); }
  std::vector<int> wakes() const override { return names_.wakes(); }

  void ends(Session& s) override {
    if (!adds_waits_) return;
    if (auto r = s.source->pass(kIterator, 1); !r)
      s.note("waits that are still in progress are not shown", r.error());
  }

  void report(Session& s) override {
    read(s);
    auto rows = changed(s);
    const bool text = s.config.format == OutputFormat::text;
    if (text && s.config.schedule.interval > 0) s.out.line(wall_time());
    const auto top = s.config.rows.top ? s.config.rows.top : UINT64_MAX;
    for (std::size_t i = 0; i < rows.size(); i++) {
      s.ledger.shown += rows[i].sum.count;
      if (i >= top || s.exporter) continue;
      if (s.config.format == OutputFormat::json)
        json(s, rows[i]);
      else if (s.config.format == OutputFormat::csv)
        csv(s, rows[i]);
      else
        write(s, rows[i]);
    }
    names_.next_report();
  }

  static std::vector<OutputKey> csv_keys() {
    std::vector<OutputKey> all = {time_key()};
    append(all, waiter_keys());
    append(
        all,
        {key("object", "string", "what it waited for; empty: the reason says all"),
         key("object_address", "integer", "address of the lock or futex, inode of a file lock"),
         key("reason", "string", "reason of the wait, as in walltime"),
         key("owner_by", "string", "owner: it held the object; waker: it ended the wait; none"),
         key("owner_comm", "string", "command name of the owner"),
         key("owner_pid", "integer", "its process"),
         key("owner_tid", "integer", "its thread id; that of the process if no other is known")});
    append(all, sum_keys());
    append(all, {key("stack", "string", "folded: command, user and kernel frames, outermost first"),
                 key("owner_stack", "string", "the owner's stack, likewise")});
    return all;
  }

 private:
  void read(Session& s) {
    rows_.clear();
    open_.clear();
    s.source->each_typed_entry<std::uint64_t, blockedby_row>(maps::waits, [&](auto& id, auto& row) {
      auto& kept = rows_[id] = row;
      if (kept.key.waiter.waiting && kept.key.waiter.tid) {
        // Several rows of a wait: the last owner counts.
        auto& best = open_[kept.key.waiter.tid];
        if (!best || kept.key.by == BLOCKED_BY_OWNER) best = &kept.key;
      }
    });
  }

  /// The wanted rows with the changes since the last report, the largest first.
  std::vector<Shown> changed(Session& s) {
    std::vector<Shown> all;
    for (auto& [id, row] : rows_) {
      auto& before = before_[id];
      Sum more{row.total_ns - std::min<std::uint64_t>(row.total_ns, before.total_ns),
               row.count - std::min<std::uint64_t>(row.count, before.count), row.longest_ns};
      before = {row.total_ns, row.count, row.longest_ns};
      if (!row.key.wanted || !more.count) continue;
      if (own_.is(row.key.waiter.tgid) || idle(s, row.key)) {
        s.ledger.count[LEDGER_FILTERED] += more.count;
        continue;
      }
      all.push_back({id, &row.key, more});
    }
    std::ranges::sort(all, [](auto& a, auto& b) {
      if (a.sum.total_ns != b.sum.total_ns) return a.sum.total_ns > b.sum.total_ns;
      return a.id < b.id;
    });
    return all;
  }

  std::size_t reason(Session& s, const blockedby_key& key) {
    auto [known, is_new] = reasons_.try_emplace({key.witness, key.waiter.kernel});
    if (is_new)
      known->second = reason_of_wait(
          key.witness, key.waiter.kernel ? names_.kernel(s, key.waiter.kernel).frames : Frames{});
    return known->second;
  }

  /// It had nothing to do: no task held it up.
  bool idle(Session& s, const blockedby_key& key) {
    if (all_ || key.by == BLOCKED_BY_OWNER) return false;
    const bool lock = key.kind != BLOCKED_OTHER && key.kind != BLOCKED_FUTEX;
    if (key.by == BLOCKED_BY_UNKNOWN && !lock && !(key.witness & WALL_UNINTERRUPTIBLE)) return true;
    auto of = wait_reasons()[reason(s, key)].of;
    return of == WaitClass::work || of == WaitClass::stopped;
  }

  /// The owner, the owner of what that one waits for, and so on.
  std::vector<Owner> chain(const blockedby_key& key) const {
    std::vector<Owner> all;
    std::vector<std::uint32_t> seen = {key.waiter.tid};
    for (auto* at = &key; at && at->by != BLOCKED_BY_UNKNOWN && all.size() < kMostOwners;) {
      Owner owner{at, nullptr};
      auto tid = at->owner.tid;
      if (auto next = rows_.find(at->next); at->next && next != rows_.end())
        owner.wait = &next->second.key;
      else if (auto open = open_.find(tid); tid && at->waiter.waiting && open != open_.end())
        owner.wait = open->second;
      owner.cycle = at->waiter.waiting && std::ranges::find(seen, tid) != seen.end();
      all.push_back(owner);
      if (owner.cycle) break;
      seen.push_back(tid);
      at = owner.wait;
    }
    return all;
  }

  StackParty party(Session& s, const stack_party& who) {
    StackParty p{who, {}, {}};
    if (!s.config.given("user-stacks-only") && who.kernel) {
      auto& kernel = names_.kernel(s, who.kernel);
      p.kernel = kernel.frames;
      missed_ |= kernel.missed;
    }
    if (who.user) {
      auto& user = names_.user(s, who.user, static_cast<pid_t>(who.tgid));
      p.user = user.frames;
      p.cut = user.cut;
      p.guessed = user.guessed;
      missed_ |= user.missed;
    }
    name(p);
    return p;
  }

  /// Of an owner of which only the number is known.
  static void name(StackParty& p) {
    if (p.who.comm[0] || p.who.state != STACK_TASK || !(p.who.tgid | p.who.tid)) return;
    auto text = blocked::comm_of(p.who.tid ? p.who.tid : p.who.tgid);
    text.copy(p.who.comm, sizeof p.who.comm - 1);
  }

  /// The stack that the owner had: where it waited itself, else where it released the object.
  StackParty owner_party(Session& s, const Owner& owner) {
    auto who = owner.of->owner;
    if (owner.wait) {
      who.kernel = owner.wait->waiter.kernel;
      who.user = owner.wait->waiter.user;
    }
    return party(s, who);
  }

  /// Counts the defects of this row's stacks; those of owners after they were asked for.
  void count_defects(Session& s, const StackParty& waiter, std::uint64_t count) {
    s.ledger.user_stack(waiter.cut, waiter.guessed, count);
    if (std::exchange(missed_, false)) s.ledger.count[LEDGER_STACK_FAILED] += count;
  }

  std::string object(const Session& s, const blockedby_key& key) const {
    if (!key.object) return {};
    if (key.kind >= BLOCKED_FLOCK) return fmt::format(" of inode {}", key.object);
    if (key.kind < BLOCKED_FUTEX && s.names.hides(key.object)) return {};
    return fmt::format(" {:#x}", key.object);
  }

  void lines_of(Session& s, const StackParty& p, const std::string& indent) const {
    for (auto& f : p.kernel) s.out.line(indent + frame_line(f));
    for (auto& f : p.user) s.out.line(indent + frame_line(f));
    if (auto marks = stack_marks(p.cut, p.guessed); !marks.empty())
      s.out.line(indent + frame_line(marks));
  }

  std::string what(Session& s, const blockedby_key& key) {
    return blocked::waits_for(key.kind, reason(s, key)) + object(s, key);
  }

  void write(Session& s, const Shown& row) {
    auto& key = *row.key;
    auto waiter = party(s, key.waiter);
    s.out.line(fmt::format("{} {} {}for {}: {}, {} {}, longest {}", printable(waiter.name()),
                           id_of(key.waiter), key.waiter.waiting ? "still waits " : "waited ",
                           what(s, key), blocked::short_time(row.sum.total_ns), row.sum.count,
                           row.sum.count == 1 ? "time" : "times",
                           blocked::short_time(row.sum.longest_ns)));
    lines_of(s, waiter, "");
    std::string indent = "  ";
    for (auto& owner : chain(key)) {
      auto p = owner_party(s, owner);
      auto who = p.who.state == STACK_TASK ? fmt::format("{} {}", printable(p.name()), id_of(p.who))
                                           : p.name();
      s.out.line(fmt::format("{}{} {}{}{}", indent,
                             owner.of->by == BLOCKED_BY_OWNER ? "held by" : "~ ended by", who,
                             owner.wait ? ", which waited for " + what(s, *owner.wait) : "",
                             owner.cycle ? " (a cycle: a deadlock)" : ""));
      if (!owner.cycle) lines_of(s, p, indent);
      indent += "  ";
    }
    s.out.line("");
    count_defects(s, waiter, row.sum.count);
  }

  static std::string_view by_word(std::uint32_t by) {
    return by == BLOCKED_BY_OWNER ? "owner" : by == BLOCKED_BY_WAKER ? "waker" : "none";
  }
  void json_wait(Session& s, JsonLine& line, const blockedby_key* key) {
    auto name = key ? blocked::object_name(key->kind) : "";
    bool shown = key && key->object && (key->kind >= BLOCKED_FUTEX || !s.names.hides(key->object));
    line.text_if(!name.empty(), "object", name);
    line.number_if(shown, "object_address", key ? key->object : 0);
    line.text_if(key, "reason", key ? wait_reasons()[reason(s, *key)].name : "");
  }

  void json(Session& s, const Shown& row) {
    auto& key = *row.key;
    auto waiter = party(s, key.waiter);
    JsonLine line("wait", s.tool.name);
    line.text("time", iso_time(monotonic_ns()));
    line.text("comm", waiter.name()).number("pid", key.waiter.tgid).number("tid", key.waiter.tid);
    line.boolean("still_waiting", key.waiter.waiting != 0);
    json_wait(s, line, &key);
    json_frames(line, waiter);
    line.key("owners").begin_array();
    for (auto& owner : chain(key)) {
      auto p = owner_party(s, owner);
      line.begin_object()
          .text("by", by_word(owner.of->by))
          .text("context", context_of(p.who.state));
      line.text("comm", p.who.state == STACK_TASK ? p.name() : "");
      line.number_if(p.who.tgid, "pid", p.who.tgid).number_if(p.who.tid, "tid", p.who.tid);
      line.boolean("cycle", owner.cycle);
      json_wait(s, line, owner.wait);
      json_frames(line, p);
      line.end_object();
    }
    line.end_array();
    line.number("count", row.sum.count).number("max_ns", row.sum.longest_ns);
    line.number("total_ns", row.sum.total_ns);
    s.out.line(line.finish());
    count_defects(s, waiter, row.sum.count);
  }

  static std::string folded_party(const StackParty& p) {
    auto all = p.kernel;
    all.insert(all.end(), p.user.begin(), p.user.end());
    return folded(all, p.name());
  }

  void csv(Session& s, const Shown& row) {
    auto& key = *row.key;
    auto waiter = party(s, key.waiter);
    auto owners = chain(key);
    StackParty owner;
    if (!owners.empty()) owner = owner_party(s, owners.front());
    auto number = [](std::uint64_t n) { return n ? std::to_string(n) : ""; };
    bool shown = key.kind >= BLOCKED_FUTEX || !s.names.hides(key.object);
    s.out.line(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                           iso_time(monotonic_ns()), csv_field(waiter.name()), key.waiter.tgid,
                           key.waiter.tid, key.waiter.waiting != 0, blocked::object_name(key.kind),
                           shown ? number(key.object) : "", wait_reasons()[reason(s, key)].name,
                           by_word(key.by), owners.empty() ? "" : csv_field(owner.name()),
                           number(owner.who.tgid), number(owner.who.tid), row.sum.count,
                           row.sum.longest_ns, row.sum.total_ns, csv_field(folded_party(waiter)),
                           owners.empty() ? "" : csv_field(folded_party(owner))));
    count_defects(s, waiter, row.sum.count);
  }

  OwnActivity own_;
  StackNames names_;
  std::map<RowId, blockedby_row> rows_;
  std::map<std::uint32_t, const blockedby_key*> open_;  ///< waits under way, by thread
  std::map<RowId, Sum> before_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> reasons_;
  bool adds_waits_ = false, all_ = false;
  bool missed_ = false;  ///< a stack of this row could not be stored
};

/// The object and the reason of a wait.
std::vector<OutputKey> wait_keys() {
  return {key("object", "string or null", "kind of object; null: the reason says all"),
          key("object_address", "integer or null",
              "address of the lock or futex, inode number of a file lock; null: none, or hidden"),
          key("reason", "string or null", "reason, as in walltime; null: it does not wait")};
}

class BlockedKind : public ReportKind {
 public:
  std::string_view name() const override { return "blocked"; }
  bool can_be_recorded() const override { return true; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<BlockedReporter>();
  }
  bool kernel_symbols() const override { return true; }
  bool names_processes() const override { return true; }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"wait",
                  "one per waiter, object and owner, the largest sum first",
                  {type_key("wait"), time_key()}};
    append(kind.keys, waiter_keys());
    append(kind.keys, wait_keys());
    kind.keys.push_back(kernel_stack_key());
    append(kind.keys, user_stack_keys());
    std::vector<OutputKey> owner = {
        key("by", "string", "owner: it held the object; waker: it ended the wait"),
        key("context", "string", "task, or what is not a task: irq, softirq, idle"),
        key("comm", "string", "command name"),
        key("pid", "integer or null", "process"),
        key("tid", "integer or null", "thread; null: only its process is known"),
        key("cycle", "boolean", "it is a waiter above: a deadlock")};
    append(owner, wait_keys());
    owner.push_back(kernel_stack_key());
    append(owner, user_stack_keys());
    kind.keys.push_back(key("owners", "array of objects",
                            "the owner, the owner of what that one waits for, and so on", {},
                            std::move(owner)));
    append(kind.keys, sum_keys());
    return {kind};
  }

  std::vector<OutputKey> csv() const override { return BlockedReporter::csv_keys(); }

  void manual(Manual& m) const override {
    m.prose(
        "An entry has a line with the waiter, what it waited for, and the sum of the times; its "
        "frames, the innermost first; and below it, further to the right, the owner with its "
        "frames, and if that one waited itself most of the time, for what, and the owner of that, "
        "and so on. Entries come in the order of their sums, the largest first.");
    m.prose(
        "The frames of an owner are those in which it waited itself, else those in which it "
        "released the object. \"~ ended by\" instead of \"held by\": the task that ended the wait; "
        "nothing says that it held the object.");
    m.prose(
        "A wait during which an object had several owners is divided among them, and counts for "
        "each of them.");
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(BlockedReport) {
  return std::make_shared<BlockedKind>();
}

}  // namespace coretap
