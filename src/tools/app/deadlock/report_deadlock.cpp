#include "tools/app/deadlock/report_deadlock.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/new_file.hpp"
#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "deadlock.skel.h"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "reports/reporter.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "text/names.hpp"
#include "tools/app/deadlock/lock_graph.hpp"

namespace coretap {

namespace {

constexpr double kLookSeconds = 1;  // maximum delay until a cycle is reported
constexpr int kFound = 1;           // exit status

/// "1 mutex", "2 mutexes".
std::string several(std::uint64_t n, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", n, n == 1 ? one : more);
}

class DeadlockReporter : public Reporter {
 public:
  void configure(Session& s) override {
    names_.configure(s, {.offsets = s.config.given("offset"), .modules = s.config.given("verbose")},
                     true);
    all_ = s.config.given("all") || s.exporter;
  }
  void size_maps(Session& s) override {
    StackNames::size_maps(s);
    if (auto* map = s.map(maps::stacks)) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override { return names_.ready(s); }

  Result<void> open(Session& s) override {
    if (!s.config.given("dump-graph")) return {};
    auto path = s.config.text("dump-graph");
    for_graphviz_ = path.ends_with(".dot") || path.ends_with(".gv");
    auto file = NewFile::create(std::string(path));
    if (!file) return file.error();
    file_ = std::move(*file);
    // The file is renamed at the end, in a directory that may belong to another user.
    s.retained.add({Capability::dac_override, Capability::fowner});
    return {};
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line(
          "time,deadlock,pid,tid,comm,first,first_address,second,second_address,timed,"
          "first_stack,second_stack");
  }

  void record(Session& s, const void* data, std::size_t size) override {
    names_.take(s, data, size);
  }

  double poll_seconds() const override {
    auto names = names_.poll_seconds();
    return names > 0 ? std::min(names, kLookSeconds) : kLookSeconds;
  }
  void poll(Session& s) override {
    names_.poll(s);
    if (s.recorder) return;  // sample() looks
    if (monotonic_ns() < looked_ns_ + static_cast<std::uint64_t>(kLookSeconds * 1e9)) return;
    look(s);
    s.out.flush();
  }
  std::vector<int> wakes() const override { return names_.wakes(); }
  double sample_seconds() const override { return kLookSeconds; }
  void sample(Session& s) override { look(s); }
  void sampled(Session& s) override { look(s); }

  void report(Session& s) override {
    look(s);
    s.ledger.shown = graph_.orders();
    if (s.config.format == OutputFormat::json) {
      JsonLine line("graph", s.tool.name);
      line.text("time", iso_time(monotonic_ns()));
      line.number("mutexes", graph_.mutexes()).number("order_count", graph_.orders());
      line.number("deadlocks", graph_.cycles());
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::text) {
      auto cycles = graph_.cycles();
      s.out.line(fmt::format("{}: {}, taken in {}",
                             cycles ? several(cycles, "potential deadlock", "potential deadlocks")
                                    : "No potential deadlocks",
                             several(graph_.mutexes(), "mutex", "mutexes"),
                             several(graph_.orders(), "order", "orders")));
    }
  }

  Result<void> finish(Session&) override {
    if (!file_) return {};
    return file_->write(for_graphviz_ ? graph_.dot() : graph_.node_link() + "\n");
  }
  bool keeps_file() const override { return file_.has_value(); }
  bool wants_end() const override { return number_ && !all_; }
  int status() const override { return number_ ? kFound : kOk; }

 private:
  void look(Session& s) {
    looked_ns_ = monotonic_ns();
    // In the order of a recording, so that numbers of mutexes are the same.
    std::vector<std::pair<deadlock_order, deadlock_seen>> orders;
    s.source->each_typed_entry<deadlock_order, deadlock_seen>(
        maps::orders, [&](auto& order, auto& seen) { orders.emplace_back(order, seen); });
    std::ranges::sort(orders, [](auto& one, auto& other) {
      return memcmp(&one.first, &other.first, sizeof one.first) < 0;
    });
    for (auto& [order, seen] : orders) graph_.add(order, seen);
    auto cycles = graph_.new_cycles();
    if (cycles.empty()) return;
    s.source->each_typed_entry<std::uint32_t, deadlock_creator>(
        maps::creators, [&](auto tid, auto& creator) { creators_[tid] = creator; });
    for (auto& cycle : cycles) {
      number_++;
      if (s.config.format == OutputFormat::json)
        json(s, cycle);
      else if (s.config.format == OutputFormat::csv)
        csv(s, cycle);
      else
        text(s, cycle);
    }
  }

  Frames frames(Session& s, std::uint64_t stack, std::uint32_t pid) {
    if (!stack) return {};
    auto& named = names_.user(s, stack, static_cast<pid_t>(pid));
    if (named.missed) s.ledger.count[LEDGER_STACK_FAILED]++;
    s.ledger.user_stack(named.cut, named.guessed, 1);
    auto all = named.frames;
    if (auto marks = stack_marks(named.cut, named.guessed); !marks.empty()) all.push_back(marks);
    return all;
  }

  static bool timed(const LockGraph::Cycle& cycle) {
    return std::any_of(cycle.begin(), cycle.end(),
                       [](auto* o) { return o->seen.flags & DEADLOCK_TIMED; });
  }
  static bool by_one_thread(const LockGraph::Cycle& cycle) {
    return std::all_of(cycle.begin(), cycle.end(), [&](auto* o) {
      return o->seen.tid == cycle.front()->seen.tid && !(o->seen.flags & DEADLOCK_SEVERAL);
    });
  }

  std::string word(std::size_t number) const {
    return fmt::format("Mutex M{} ({:#x})", number, graph_.mutex(number).address);
  }

  void write(Session& s, const Frames& all) {
    for (auto& f : all) s.out.line(frame_line(f));
    if (all.empty()) s.out.line(frame_line("[no stack]"));
    s.out.line("");
  }

  void text(Session& s, const LockGraph::Cycle& cycle) {
    auto& pid = cycle.front()->seen.pid;
    s.out.line(fmt::format("----------------\nPotential Deadlock Detected! [{}] process {}\n",
                           wall_time(), pid));
    std::string way;
    for (auto* o : cycle) way += word(o->first) + " => ";
    s.out.line("Cycle in lock order graph: " + way + word(cycle.front()->first) + "\n");
    if (by_one_thread(cycle))
      s.out.line("All by one thread: a second thread would have to run the same code.\n");
    if (timed(cycle)) s.out.line("A wait has a time limit, which would end the deadlock.\n");
    std::map<std::uint32_t, std::string> threads;
    for (auto* o : cycle) {
      auto& seen = o->seen;
      auto thread = fmt::format("Thread {} ({})", seen.tid, printable(text_in(seen.comm)));
      threads.emplace(seen.tid, thread);
      s.out.line(fmt::format("{} acquired here while holding {} in {}:", word(o->second),
                             word(o->first), thread));
      write(s, frames(s, seen.stack_second, pid));
      s.out.line(
          fmt::format("{} previously acquired by the same {} here:", word(o->first), thread));
      write(s, frames(s, seen.stack_first, pid));
    }
    for (auto& [tid, thread] : threads) {
      auto found = creators_.find(tid);
      if (found == creators_.end()) {
        s.out.line(thread + " existed before tracing started\n");
        continue;
      }
      auto& by = found->second;
      s.out.line(fmt::format("{} created by Thread {} ({}) here:", thread, by.tid,
                             printable(text_in(by.comm))));
      write(s, frames(s, by.stack, by.pid));
    }
  }

  void json(Session& s, const LockGraph::Cycle& cycle) {
    JsonLine line("deadlock", s.tool.name);
    line.text("time", iso_time(looked_ns_));
    line.number("pid", cycle.front()->seen.pid).text("comm", text_in(cycle.front()->seen.comm));
    line.boolean("one_thread", by_one_thread(cycle)).boolean("timed", timed(cycle));
    line.key("orders").begin_array();
    for (auto* o : cycle) {
      auto& seen = o->seen;
      line.begin_object().number("tid", seen.tid).text("comm", text_in(seen.comm));
      line.text("first", fmt::format("M{}", o->first));
      line.number("first_address", graph_.mutex(o->first).address);
      line.text("second", fmt::format("M{}", o->second));
      line.number("second_address", graph_.mutex(o->second).address);
      line.texts("first_stack", frames(s, seen.stack_first, seen.pid));
      line.texts("second_stack", frames(s, seen.stack_second, seen.pid));
      auto found = creators_.find(seen.tid);
      auto by = found == creators_.end() ? deadlock_creator{} : found->second;
      line.number_if(found != creators_.end(), "created_by", by.tid);
      line.texts("creation_stack", frames(s, by.stack, by.pid)).end_object();
    }
    line.end_array();
    s.out.line(line.finish());
  }

  void csv(Session& s, const LockGraph::Cycle& cycle) {
    for (auto* o : cycle) {
      auto& seen = o->seen;
      s.out.line(fmt::format("{},{},{},{},{},M{},{},M{},{},{},{},{}", iso_time(looked_ns_), number_,
                             seen.pid, seen.tid, csv_field(text_in(seen.comm)), o->first,
                             graph_.mutex(o->first).address, o->second,
                             graph_.mutex(o->second).address, (seen.flags & DEADLOCK_TIMED) != 0,
                             csv_field(folded(frames(s, seen.stack_first, seen.pid))),
                             csv_field(folded(frames(s, seen.stack_second, seen.pid)))));
    }
  }

  StackNames names_;
  LockGraph graph_;
  std::map<std::uint32_t, deadlock_creator> creators_;
  std::optional<NewFile> file_;
  std::uint64_t looked_ns_ = 0, number_ = 0;
  bool all_ = false, for_graphviz_ = false;
};

class DeadlockKind : public ReportKind {
 public:
  std::string_view name() const override { return "deadlock"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<DeadlockReporter>();
  }
  bool can_be_recorded() const override { return true; }

  std::vector<JsonKind> json() const override {
    return {
        {"deadlock",
         "one per cycle, as soon as it is found",
         {type_key("deadlock"), time_key(), key("pid", "integer", "process"),
          key("comm", "string", "name of the thread of its first order"),
          key("one_thread", "boolean", "all orders are by one thread"),
          key("timed", "boolean", "a wait has a time limit"),
          key("orders", "array of objects", "the second mutex of each is the first of the next", {},
              {key("tid", "integer", "thread that first did this"),
               key("comm", "string", "its name"), key("first", "string", "mutex that it held"),
               key("first_address", "integer", "its address"),
               key("second", "string", "mutex that it then took or waited for"),
               key("second_address", "integer", "its address"),
               key("first_stack", "array of strings", "where it took the first one"),
               key("second_stack", "array of strings", "where it took the second one"),
               key("created_by", "integer or null",
                   "thread that created this one; null: it existed before"),
               key("creation_stack", "array of strings", "where it was created")})}},
        {"graph",
         "one at the end",
         {type_key("graph"), time_key(), key("mutexes", "integer", "mutexes in orders"),
          key("order_count", "integer", "orders in which two of them were taken"),
          key("deadlocks", "integer", "cycles")}}};
  }

  std::vector<OutputKey> csv() const override {
    return {time_key(),
            key("deadlock", "integer", "number of the deadlock; one row for each order"),
            key("pid", "integer", "process"),
            key("tid", "integer", "thread that first did this"),
            key("comm", "string", "its name"),
            key("first", "string", "mutex that it held"),
            key("first_address", "integer", "its address"),
            key("second", "string", "mutex that it then took or waited for"),
            key("second_address", "integer", "its address"),
            key("timed", "boolean", "it waited with a time limit"),
            key("first_stack", "string", "where it took the first one, folded"),
            key("second_stack", "string", "where it took the second one, folded")};
  }

  void manual(Manual& m) const override {
    m.prose(
        "A potential deadlock is a block of lines: the cycle of mutexes; for each of its orders, "
        "the two user stacks in which a thread took, or waited for, the second mutex and had taken "
        "the first one; and where those threads were created. The last line counts the potential "
        "deadlocks, mutexes and orders.");
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(DeadlockReport) {
  return std::make_shared<DeadlockKind>();
}

}  // namespace coretap
