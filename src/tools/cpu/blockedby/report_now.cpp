#include "tools/cpu/blockedby/report_now.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "blockedby.skel.h"
#include "coretap/clock.hpp"
#include "coretap/parse.hpp"
#include "coretap/report_kind.hpp"
#include "coretap/small_files.hpp"
#include "cpu/futex_owner.h"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/wait_rules.hpp"
#include "text/names.hpp"
#include "tools/cpu/blockedby/file_locks.hpp"
#include "tools/cpu/blockedby/kinds.hpp"

namespace coretap {

namespace {

constexpr ProgramName kIterator = progs::on_blocked;

/// A blocked task and its holder.
struct Blocked {
  blocked_task task;
  std::uint32_t call = 0;
  std::size_t reason = 0;
  std::uint32_t kind = BLOCKED_OTHER;
  std::uint64_t object = 0;
  std::uint32_t owner = 0;    ///< its thread id; 0: not known
  std::string_view why = {};  ///< why it is not known
  Frames frames = {};

  bool kthread() const { return task.witness & WALL_KTHREAD; }
  bool waits_for_lock() const {
    return kind != BLOCKED_OTHER && kind != BLOCKED_FUTEX && kind != BLOCKED_JOIN;
  }
  /// Does it count, even if its holder is not known?
  bool stuck() const {
    return waits_for_lock() || task.state == 'D' ||
           (wait_reasons()[reason].of == WaitClass::lock && reason != wait_reason("futex"));
  }
};

/// The thread of this process that has the number `own` in its own pid namespace; 0: none.
std::uint32_t thread_of(std::uint32_t pid, std::uint32_t own, bool same_namespace) {
  auto directory = fmt::format("/proc/{}/task", pid);
  std::error_code failed;
  if (same_namespace)
    return std::filesystem::exists(fmt::format("{}/{}", directory, own), failed) ? own : 0;
  for (auto& thread : std::filesystem::directory_iterator(directory, failed)) {
    auto status = read_file(thread.path() / "status").value_or("");
    auto at = status.find("\nNSpid:");
    if (at == std::string::npos) continue;
    std::string_view line(status);
    line.remove_prefix(at + 1);
    line = line.substr(0, line.find('\n'));
    if (parse_unsigned(line.substr(line.find_last_of(" \t") + 1)) == own)
      return static_cast<std::uint32_t>(
          parse_unsigned(thread.path().filename().string()).value_or(0));
  }
  return 0;
}

class NowReporter : public Reporter {
 public:
  bool immediate() const override { return true; }

  void configure(Session& s) override {
    set_variable(s, "stack_depth", s.stack_depth());
    stacks_.emplace(Stacks::Style{});
    all_ = s.config.given("all");
    knows_mutexes_ =
        s.kernel.has_field("task_struct", "blocker") ||
        (s.kernel.has_field("task_struct", "blocked_on") && !s.kernel.has_field("mutex", "magic"));
    if (!s.kernel.has_field("task_struct", "blocker"))
      s.limits.emplace_back(knows_mutexes_
                                ? "the kernel keeps which mutex a task waits for, but not which "
                                  "semaphore"
                                : "this kernel does not keep which of its locks a task waits for");
  }
  Result<void> open(Session& s) override {
    // Words of locks are in the memory of other users' programs.
    s.retained.add(Capability::sys_ptrace);
    return s.source->open_iterator(kIterator);
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    std::string line;
    for (auto& k : keys(true)) line += (line.empty() ? "" : ",") + k.name;
    s.out.line(line);
  }

  void report(Session& s) override {
    if (!read(s)) return;
    find_tree(s);
    const bool text = s.config.format == OutputFormat::text;
    if (text && s.config.schedule.interval > 0) s.out.line(wall_time());
    written_.clear();
    for (auto root : roots_) branch(s, root, 0);
    // The others are in cycles.
    for (auto& [tid, b] : blocked_)
      if (in_tree_.contains(tid) && !written_.contains(tid)) branch(s, tid, 0);
    s.ledger.shown += written_.size();
    if (text && written_.empty()) s.out.line("No task is blocked by another one, or in state D.");
  }

  static std::vector<OutputKey> keys(bool csv) {
    std::string unknown = csv ? "" : " or null";
    std::vector<OutputKey> all = {
        time_key(),
        key("depth", "integer", "0: no task is known to hold it up; below it, those it holds up"),
        key("comm", "string", "command name"),
        key("pid", "integer" + unknown, "process; null: only a thread is known"),
        key("tid", "integer", "thread"),
        key("state", "string" + unknown, "D: uninterruptible, S: another sleep; null: it runs"),
        key("blocked_ns", "integer" + unknown, "time in this state; null: not known"),
        key("object", "string" + unknown, "kind of object that it waits for"),
        key("object_address", "integer" + unknown,
            "address of the lock or futex, inode number of a file lock; null: none, or hidden"),
        key("reason", "string" + unknown, "reason of the wait, as in walltime"),
        key("owner_tid", "integer" + unknown,
            "thread that holds it; of a file lock the process; null: not known"),
        key("owner_unknown", "string" + unknown, "why the holder is not known"),
        key("cycle", "boolean", "the holder waits for this task: a deadlock")};
    all.push_back(csv ? folded_kernel_stack_key() : kernel_stack_key());
    return all;
  }

 private:
  bool read(Session& s) {
    auto bytes = s.source->pass(kIterator, sizeof(blocked_task));
    if (!bytes) {
      s.complete(bytes.error());
      return false;
    }
    blocked_.clear();
    const auto futex = blocked::call_index("futex"), futex_wait = blocked::call_index("futex_wait"),
               flock = blocked::call_index("flock"), fcntl = blocked::call_index("fcntl");
    for (std::size_t at = 0; at + sizeof(blocked_task) <= bytes->size();
         at += sizeof(blocked_task)) {
      Blocked b{};
      memcpy(&b.task, bytes->data() + at, sizeof b.task);
      if (!b.task.who.tid) continue;  // not in this pid namespace
      b.call = static_cast<std::uint32_t>(b.task.witness & WALL_CALL);
      b.frames = kernel_frames(s, *stacks_, b.task.stack);
      b.reason = reason_of_wait(b.task.witness, b.frames);
      if (b.task.kind != BLOCKED_OTHER)
        by_kernel(b);
      else if (b.call == futex && futex_waits(b.task.args[1] & FUTEX_COMMAND))
        by_futex(b, b.task.args[1] & FUTEX_COMMAND, b.task.args[2],
                 !(b.task.args[1] & FUTEX_PRIVATE));
      else if (b.call == futex_wait)
        by_futex(b, FUTEX_WAIT, b.task.args[1], !(b.task.args[3] & FUTEX_PRIVATE));
      else if ((b.call == flock || b.call == fcntl) && b.reason == wait_reason("file_lock"))
        by_file(b);
      else if (b.stuck())
        b.why = !knows_mutexes_ && wait_reasons()[b.reason].of == WaitClass::lock
                    ? "the kernel does not keep the lock"
                    : "nothing says who ends this wait";
      blocked_.emplace(b.task.who.tid, std::move(b));
    }
    locks_.reset();
    return true;
  }

  static void by_kernel(Blocked& b) {
    b.kind = b.task.kind;
    b.object = b.task.object;
    b.owner = b.task.owner_tid;
    if (!b.owner)
      b.why = b.kind == BLOCKED_MUTEX ? "it is just passed on" : "readers hold it, or no task";
  }

  /// A lock of a program. Its words are read in the memory of the waiting process.
  static void by_futex(Blocked& b, std::uint64_t command, std::uint64_t value, bool shared) {
    futex_words words{};
    iovec to{&words, sizeof words}, from{reinterpret_cast<void*>(b.task.args[0]), sizeof words};
    auto pid = static_cast<pid_t>(b.task.who.pid);
    auto got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (got < static_cast<ssize_t>(sizeof words)) {
      words = {};
      to.iov_len = from.iov_len = sizeof words.lock;
      got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    }
    auto owner = owner_of_futex(static_cast<std::uint32_t>(command),
                                static_cast<std::uint32_t>(value), &words);
    b.kind = owner.kind;
    b.object = b.task.args[0];
    if (got < static_cast<ssize_t>(sizeof words.lock)) {
      b.why = "its memory cannot be read";
      return;
    }
    const bool same = b.task.own_tid == b.task.who.tid && b.task.own_pid == b.task.who.pid;
    if (owner.tid) b.owner = thread_of(b.task.who.pid, owner.tid, same);
    // The other process is in the same pid namespace, or nothing is known.
    if (owner.tid && !b.owner && shared && same && !blocked::comm_of(owner.tid).empty())
      b.owner = owner.tid;
    if (b.owner) return;
    if (b.kind == BLOCKED_FUTEX_TID || b.kind == BLOCKED_JOIN) b.kind = BLOCKED_FUTEX;
    b.why = owner.tid && b.kind != BLOCKED_FUTEX ? "the lock's owner is no thread of the process"
            : b.kind == BLOCKED_FUTEX            ? "it is no lock that says who holds it"
                                                 : "the lock does not say who holds it";
  }

  void by_file(Blocked& b) {
    if (!locks_) locks_ = blocked::awaited_locks(read_file("/proc/locks").value_or(""));
    b.kind = b.call == blocked::call_index("flock") ? BLOCKED_FLOCK : BLOCKED_FCNTL;
    auto found = locks_->find(b.task.who.pid);
    if (found == locks_->end()) {
      b.why = "/proc/locks does not have it";
      return;
    }
    b.kind = found->second.kind;
    b.object = found->second.inode;
    b.owner = found->second.holder;
    if (!b.owner) b.why = "it is a lock of an open file";
  }

  /// The tasks to show: wanted ones that are held up or stuck, and their holders.
  void find_tree(const Session&) {
    below_.clear();
    in_tree_.clear();
    roots_.clear();
    std::set<std::uint32_t> owners;
    for (auto& [tid, b] : blocked_)
      if (b.task.wanted && (all_ || b.stuck())) climb(tid);
    // Tasks that wait for the end of a thread that is held up.
    for (bool more = true; more;) {
      more = false;
      for (auto& [tid, b] : blocked_)
        if (b.kind == BLOCKED_JOIN && b.owner && b.task.wanted && !in_tree_.contains(tid) &&
            in_tree_.contains(b.owner)) {
          climb(tid);
          more = true;
        }
    }
    for (auto tid : in_tree_) {
      auto found = blocked_.find(tid);
      if (found != blocked_.end() && found->second.owner)
        below_[found->second.owner].push_back(tid);
      else
        roots_.push_back(tid);
    }
    // Those that hold up the most first.
    std::ranges::stable_sort(roots_, [&](auto a, auto b) { return size_of(a) > size_of(b); });
  }

  void climb(std::uint32_t tid) {
    while (tid && in_tree_.insert(tid).second) {
      auto found = blocked_.find(tid);
      tid = found == blocked_.end() ? 0 : found->second.owner;
    }
  }

  std::size_t size_of(std::uint32_t tid) const {
    auto found = below_.find(tid);
    if (found == below_.end()) return 0;
    auto n = found->second.size();
    for (auto t : found->second) n += size_of(t);
    return n;
  }

  void branch(Session& s, std::uint32_t tid, std::size_t depth) {
    if (!written_.insert(tid).second) return;
    auto found = blocked_.find(tid);
    auto* b = found == blocked_.end() ? nullptr : &found->second;
    // In a cycle the first one has its holder below itself.
    const bool cycle = b && b->owner && depth == 0;
    if (s.config.format == OutputFormat::json)
      json(s, tid, b, depth, cycle);
    else if (s.config.format == OutputFormat::csv)
      csv(s, tid, b, depth, cycle);
    else
      text(s, tid, b, depth, cycle);
    if (auto waiters = below_.find(tid); waiters != below_.end())
      for (auto waiter : waiters->second) branch(s, waiter, depth + 1);
  }

  static std::string name_of(std::uint32_t tid, const Blocked* b) {
    if (!b) return blocked::comm_of(tid);
    return {b->task.who.comm, strnlen(b->task.who.comm, sizeof b->task.who.comm)};
  }

  std::string object(const Session& s, const Blocked& b) const {
    if (!b.object) return {};
    if (b.kind >= BLOCKED_FLOCK) return fmt::format(" of inode {}", b.object);
    if (b.kind < BLOCKED_FUTEX && s.names.hides(b.object)) return {};
    return fmt::format(" {:#x}", b.object);
  }

  void text(Session& s, std::uint32_t tid, const Blocked* b, std::size_t depth, bool cycle) {
    const std::string indent(2 * depth, ' ');
    auto line = fmt::format("{}{} ", indent, printable(name_of(tid, b)));
    if (!b) {
      s.out.line(line + fmt::format("{} runs, or is queued for a CPU", tid));
      return;
    }
    auto& who = b->task.who;
    line += who.tid == who.pid ? std::to_string(who.pid) : fmt::format("{}/{}", who.pid, who.tid);
    line += " waits for " + blocked::waits_for(b->kind, b->reason) + object(s, *b);
    if (b->task.in_state_ns) line += ", for " + blocked::short_time(b->task.in_state_ns);
    if (b->task.state == 'D') line += ", state D";
    if (cycle)
      line += fmt::format(": held by {} {} below, which waits for this one: a deadlock",
                          printable(blocked::comm_of(b->owner)), b->owner);
    else if (!b->owner && !b->why.empty())
      line += fmt::format(" (holder not known: {})", b->why);
    s.out.line(line);
    for (auto& f : b->frames) s.out.line(indent + frame_line(f));
  }

  void json(Session& s, std::uint32_t tid, const Blocked* b, std::size_t depth, bool cycle) {
    JsonLine line("blocked", s.tool.name);
    line.text("time", iso_time(monotonic_ns())).number("depth", depth);
    line.text("comm", name_of(tid, b));
    line.number_if(b, "pid", b ? b->task.who.pid : 0).number("tid", tid);
    line.text_if(b, "state", b && b->task.state == 'D' ? "D" : "S");
    line.number_if(b && b->task.in_state_ns, "blocked_ns", b ? b->task.in_state_ns : 0);
    auto kind = b ? blocked::object_name(b->kind) : "";
    line.text_if(!kind.empty(), "object", kind);
    line.number_if(b && shows(s, *b), "object_address", b ? b->object : 0);
    line.text_if(b, "reason", b ? wait_reasons()[b->reason].name : "");
    line.number_if(b && b->owner, "owner_tid", b ? b->owner : 0);
    line.text_if(b && !b->why.empty(), "owner_unknown", b ? b->why : "");
    line.boolean("cycle", cycle).texts("kernel_stack", b ? b->frames : Frames{});
    s.out.line(line.finish());
  }

  static bool shows(const Session& s, const Blocked& b) {
    return b.object && (b.kind >= BLOCKED_FUTEX || !s.names.hides(b.object));
  }

  void csv(Session& s, std::uint32_t tid, const Blocked* b, std::size_t depth, bool cycle) {
    auto number = [](bool known, std::uint64_t n) { return known ? std::to_string(n) : ""; };
    s.out.line(fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{}", iso_time(monotonic_ns()), depth,
        csv_field(name_of(tid, b)), number(b, b ? b->task.who.pid : 0), tid,
        !b                     ? ""
        : b->task.state == 'D' ? "D"
                               : "S",
        number(b && b->task.in_state_ns, b ? b->task.in_state_ns : 0),
        b ? blocked::object_name(b->kind) : "", number(b && shows(s, *b), b ? b->object : 0),
        b ? wait_reasons()[b->reason].name : "", number(b && b->owner, b ? b->owner : 0),
        csv_field(b ? b->why : ""), cycle, csv_field(folded(b ? b->frames : Frames{}))));
  }

  std::optional<Stacks> stacks_;
  std::map<std::uint32_t, Blocked> blocked_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> below_;  ///< waiters by holder
  std::set<std::uint32_t> in_tree_, written_;
  std::vector<std::uint32_t> roots_;
  std::optional<std::map<std::uint32_t, blocked::FileLock>> locks_;
  bool all_ = false, knows_mutexes_ = false;
};

class NowKind : public ReportKind {
 public:
  std::string_view name() const override { return "snapshot"; }
  std::unique_ptr<Reporter> reporter() const override { return std::make_unique<NowReporter>(); }
  bool kernel_symbols() const override { return true; }
  bool names_processes() const override { return false; }  // its program excludes the loader

  std::vector<JsonKind> json() const override {
    JsonKind kind{
        "blocked", "one per task, those that it holds up behind it", {type_key("blocked")}};
    for (auto& k : NowReporter::keys(false)) kind.keys.push_back(k);
    return {kind};
  }
  std::vector<OutputKey> csv() const override { return NowReporter::keys(true); }

  void manual(Manual& m) const override {
    m.prose(
        "A line per task, then the frames of its kernel stack; indented below it, the tasks that "
        "it holds up. The tasks that hold up the most come first; then those in state D, or that "
        "wait for a lock, of which no holder is known, with the reason why not.");
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(NowReport) { return std::make_shared<NowKind>(); }

}  // namespace coretap
