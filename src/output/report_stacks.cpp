// Stack tools: totals by kernel and user stack, as text, folded for flame graphs, or as data.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "core/maps.hpp"
#include "core/run.hpp"
#include "core/session.hpp"
#include "output/reporters.hpp"
#include "output/stacks.hpp"

namespace coretap {

namespace {

constexpr char kRunnable[] = "[runnable]";  // preempted: waits for a CPU, not for an event
constexpr char kApart[] = "--";             // between one party's stack and the next one's

using Frames = std::vector<std::string>;

/// One who is in a sum, with the names of its frames, leaf first.
struct Party {
  stack_party who;
  std::string name;
  Frames kernel, user;
};

struct Entry {
  stack_sum sum;
  std::vector<stack_party> parties;
};

std::string name_of(const stack_party& p) {
  switch (p.state) {
    case STACK_IDLE:
      return "[idle]";
    case STACK_IRQ:
      return "[irq]";
    case STACK_SOFTIRQ:
      return "[softirq]";
    default:
      return {p.comm, strnlen(p.comm, sizeof p.comm)};
  }
}

void append(std::string& line, std::string_view word) {
  if (!line.empty()) line += ';';
  line += word;
}

class StackReporter : public Reporter {
 public:
  explicit StackReporter(const StackReport& report) : report_(report) {}

  void configure(Session& s) override {
    set_variable(s, "stack_kernel", !s.config.given("user-stacks-only"));
    // By the names of tasks there is no process to ask for its functions.
    set_variable(s, "stack_user",
                 report_.layout != StackReport::waker && !s.config.given("kernel-stacks-only"));
    set_variable(s, "stack_bytes", s.stack_depth() * 8);
    stacks_.emplace(s.config.given("offset"), s.config.given("verbose"));
    if (report_.layout != StackReport::alone) tell_interrupts(s);
    annotated_ = s.config.given("annotations");
    delimited_ = s.config.given("delimited");
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    s.out.line(report_.measure == StackReport::time ? "comm,pid,tid,runnable,total_ns,count,stack"
                                                    : "comm,pid,tid,count,stack");
  }

  // The only records are processes whose user stack was seen for the first time.
  void record(Session&, const void* data, std::size_t size) override {
    if (size < sizeof(stack_process)) return;
    auto* process = static_cast<const stack_process*>(data);
    stacks_->remember(static_cast<pid_t>(process->tgid), static_cast<pid_t>(process->forked_from));
  }

  void report(Session& s) override {
    auto entries = read(s);
    std::sort(entries.begin(), entries.end(), [&](auto& a, auto& b) {
      if (value(a.sum) != value(b.sum)) return value(a.sum) < value(b.sum);
      return memcmp(a.parties.data(), b.parties.data(), a.parties.size() * sizeof(stack_party)) < 0;
    });
    for (auto& e : entries) {
      s.ledger.shown += e.sum.count;
      show(s, e);
    }
    for (auto& [stack, sum] : folded_) s.out.line(fmt::format("{} {}", stack, shown(sum)));
  }

 private:
  static void tell_interrupts(Session& s) {
    auto code = interrupt_code();
    set_variable(s, "irq_code_begin", code.irq_begin);
    set_variable(s, "irq_code_end", code.irq_end);
    set_variable(s, "softirq_code_begin", code.softirq_begin);
    set_variable(s, "softirq_code_end", code.softirq_end);
    if (!code.irq_end)
      s.limits.emplace_back(
          "interrupts that wake cannot be told from the tasks they interrupt (/proc/kallsyms hides "
          "addresses; CAP_SYSLOG or root sees them)");
  }

  std::uint64_t value(const stack_sum& sum) const {
    return report_.measure == StackReport::time ? sum.total_ns : sum.count;
  }
  /// Microseconds, or samples.
  std::uint64_t shown(std::uint64_t value) const {
    return report_.measure == StackReport::time ? value / 1000 : value;
  }

  static std::vector<Entry> read(Session& s) {
    std::vector<Entry> entries;
    auto* map = s.map("stack_counts");
    if (!map) return entries;
    std::size_t most = (bpf_map__value_size(map) - sizeof(stack_sum)) / sizeof(stack_party);
    each_entry(map, [&](const char*, const char* value) {
      Entry e{{}, std::vector<stack_party>(most)};
      memcpy(&e.sum, value, sizeof e.sum);
      memcpy(e.parties.data(), value + sizeof e.sum, most * sizeof(stack_party));
      // The first is the task itself; a waker has a name, or is no task.
      while (e.parties.size() > 1 && !e.parties.back().comm[0] &&
             e.parties.back().state == STACK_TASK)
        e.parties.pop_back();
      if (e.sum.count) entries.push_back(std::move(e));
    });
    return entries;
  }

  Frames frames(Session& s, std::uint64_t id, pid_t tgid, bool kernel) {
    if (!id) return {};
    auto known = known_.find({id, kernel ? 0 : tgid});
    if (known != known_.end()) return known->second;
    stack found{};
    if (bpf_map_lookup_elem(bpf_map__fd(s.map("stacks")), &id, &found)) {
      missed_ = true;
      return {kernel ? "[Missed Kernel Stack]" : "[Missed User Stack]"};
    }
    auto& all = known_[{id, kernel ? 0 : tgid}];
    all = kernel ? stacks_->kernel(found) : stacks_->user(tgid, found);
    if (kernel && annotated_)
      for (auto& f : all) f += "_[k]";
    return all;
  }

  std::vector<Party> parties(Session& s, const Entry& e) {
    std::vector<Party> all;
    for (auto& p : e.parties) {
      auto tgid = static_cast<pid_t>(p.tgid);
      all.push_back(
          {p, name_of(p), frames(s, p.kernel, tgid, true), frames(s, p.user, tgid, false)});
    }
    return all;
  }

  /// Frames from the outermost to the leaf.
  void fold_down(std::string& line, const Party& p) const {
    for (auto f = p.user.rbegin(); f != p.user.rend(); ++f) append(line, folded_word(*f));
    if (delimited_ && !p.user.empty() && !p.kernel.empty()) append(line, "-");
    for (auto f = p.kernel.rbegin(); f != p.kernel.rend(); ++f) append(line, folded_word(*f));
  }

  std::string fold(const std::vector<Party>& all) const {
    auto& task = all.front();
    std::string line;
    if (report_.layout == StackReport::waker) {
      if (all.size() > 1) {
        line = folded_word(all[1].name);
        fold_down(line, all[1]);
      }
      append(line, folded_word(task.name));
      return line;
    }
    line = folded_word(task.name);
    fold_down(line, task);
    if (task.who.state == STACK_RUNNABLE) append(line, kRunnable);
    // From here on the other way: what woke lies above what it woke.
    for (std::size_t i = 1; i < all.size(); i++) {
      append(line, kApart);
      for (auto& f : all[i].kernel) append(line, folded_word(f));
      for (auto& f : all[i].user) append(line, folded_word(f));
      append(line, folded_word(all[i].name));
    }
    return line;
  }

  /// Null where only a name is kept, or where it was no task.
  static void json_ids(JsonLine& line, const stack_party& who) {
    for (auto [name, id] : {std::pair{"pid", who.tgid}, std::pair{"tid", who.tid}}) {
      line.key(name);
      if (who.tid)
        line.number(id);
      else
        line.null();
    }
  }

  static void json_frames(JsonLine& line, const Party& p) {
    for (auto& [name, list] :
         {std::pair{"kernel_stack", &p.kernel}, std::pair{"user_stack", &p.user}}) {
      line.key(name).begin_array();
      for (auto& f : *list) line.text(f);
      line.end_array();
    }
  }

  static const char* context(std::uint32_t state) {
    switch (state) {
      case STACK_IDLE:
        return "idle";
      case STACK_IRQ:
        return "irq";
      case STACK_SOFTIRQ:
        return "softirq";
      default:
        return "task";
    }
  }

  void json(Session& s, const Entry& e, const std::vector<Party>& all) const {
    auto& task = all.front();
    JsonLine line;
    line.text("type", "stack").text("comm", task.name);
    json_ids(line, task.who);
    if (report_.measure == StackReport::time)
      line.boolean("runnable", task.who.state == STACK_RUNNABLE);
    json_frames(line, task);
    if (report_.layout != StackReport::alone) {
      line.key("wakers").begin_array();
      for (std::size_t i = 1; i < all.size(); i++) {
        line.begin_object().text("context", context(all[i].who.state)).text("comm", all[i].name);
        json_ids(line, all[i].who);
        json_frames(line, all[i]);
        line.end_object();
      }
      line.end_array();
    }
    if (report_.measure == StackReport::time) line.number("total_ns", e.sum.total_ns);
    line.number("count", e.sum.count);
    s.out.line(line.finish());
  }

  void csv(Session& s, const Entry& e, const std::vector<Party>& all) const {
    auto& task = all.front();
    auto row = fmt::format("{},{},{},", csv_field(task.name), task.who.tgid, task.who.tid);
    if (report_.measure == StackReport::time)
      row += fmt::format("{},{},", task.who.state == STACK_RUNNABLE, e.sum.total_ns);
    s.out.line(row + fmt::format("{},{}", e.sum.count, csv_field(fold(all))));
  }

  static void lines(Session& s, const Frames& frames, bool down) {
    if (down)
      for (auto f = frames.rbegin(); f != frames.rend(); ++f) s.out.line("    " + printable(*f));
    else
      for (auto& f : frames) s.out.line("    " + printable(f));
  }

  /// "    waker:           bash 1234"
  static void title(Session& s, const std::string& role, const Party& p, bool with_id) {
    auto line = fmt::format("    {:<16} {}", role, printable(p.name));
    s.out.line(with_id && p.who.tid ? fmt::format("{} {}", line, p.who.tid) : line);
  }

  void text(Session& s, const std::vector<Party>& all) const {
    auto& task = all.front();
    if (report_.layout == StackReport::waker) {
      title(s, "target:", task, false);
      if (all.size() < 2) return;
      lines(s, all[1].kernel, false);
      lines(s, all[1].user, false);
      title(s, "waker:", all[1], false);
      return;
    }
    for (std::size_t i = all.size() - 1; i > 0; i--) {
      title(s, all.size() > 2 ? fmt::format("waker{}:", i) : "waker:", all[i], true);
      lines(s, all[i].user, true);
      lines(s, all[i].kernel, true);
      s.out.line(fmt::format("    {:<16} {}", kApart, kApart));
    }
    if (task.who.state == STACK_RUNNABLE) s.out.line(fmt::format("    {}", kRunnable));
    lines(s, task.kernel, false);
    if (delimited_ && !task.kernel.empty() && !task.user.empty()) s.out.line("    --");
    lines(s, task.user, false);
    if (report_.layout == StackReport::chain)
      title(s, "target:", task, true);
    else
      s.out.line(fmt::format("    {:<16} {} ({})", "-", printable(task.name), task.who.tid));
  }

  void show(Session& s, const Entry& e) {
    missed_ = false;
    auto all = parties(s, e);
    if (missed_) s.ledger.count[LEDGER_STACK_FAILED] += e.sum.count;
    if (s.config.format == OutputFormat::json) {
      json(s, e, all);
    } else if (s.config.format == OutputFormat::csv) {
      csv(s, e, all);
    } else if (s.config.given("folded")) {
      // Threads of one name with one stack are one line.
      folded_[fold(all)] += value(e.sum);
    } else {
      text(s, all);
      s.out.line(fmt::format("        {}\n", shown(value(e.sum))));
    }
  }

  const StackReport& report_;
  std::optional<Stacks> stacks_;
  std::map<std::pair<std::uint64_t, pid_t>, Frames> known_;
  std::map<std::string, std::uint64_t> folded_;
  bool annotated_ = false, delimited_ = false;
  bool missed_ = false;  ///< the entry that is being shown lacks a stack
};

}  // namespace

std::unique_ptr<Reporter> make(const StackReport& report) {
  return std::make_unique<StackReporter>(report);
}

}  // namespace coretap
