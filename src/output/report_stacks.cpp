// Stack tools: totals by kernel and user stack, as text, flame graphs, folded, or as data.
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
#include "core/walker.hpp"
#include "output/flamegraph.hpp"
#include "output/new_file.hpp"
#include "output/reporters.hpp"
#include "output/stack_layout.hpp"
#include "output/stacks.hpp"

namespace coretap {

namespace {

struct Entry {
  stack_sum sum;
  std::vector<stack_party> parties;
};

/// "offcputime --min-block-time 1000 -- make ..., 10.0 s, Linux 6.12.3"
std::string title(const Session& s, double seconds) {
  std::string text(s.tool.name);
  for (auto& [name, value] : s.config.given_options()) {
    if (name == "svg") continue;
    text += fmt::format(" --{}{}{}", name, value.empty() ? "" : " ", value);
  }
  // Its arguments may be secret, and pictures travel.
  if (!s.config.command.empty())
    text += fmt::format(" -- {}{}", s.config.command[0], s.config.command.size() > 1 ? " ..." : "");
  return fmt::format("{}, {:.1f} s, Linux {}", text, seconds, kernel_release());
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
    layout_.emplace(report_,
                    StackLayout::Style{s.config.given("annotations"), s.config.given("delimited")});
    walker_ = make_walker(s.config);
    walker_->configure(s);
    if (report_.layout != StackReport::alone) tell_interrupts(s);
  }

  Result<void> open(Session& s) override {
    if (!s.config.svg.empty() && s.config.svg != "-") {
      auto file = NewFile::create(s.config.svg);
      if (!file) return file.error();
      file_ = std::move(*file);
    }
    return walker_->open(s);
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv) s.out.line(layout_->csv_keys());
  }

  // The only records are processes whose user stack was seen for the first time.
  void record(Session& s, const void* data, std::size_t size) override {
    if (size < sizeof(stack_process)) return;
    auto& process = *static_cast<const stack_process*>(data);
    stacks_->remember(static_cast<pid_t>(process.tgid), static_cast<pid_t>(process.forked_from));
    walker_->meet(s, process);
  }

  void report(Session& s) override {
    auto entries = read(s);
    if (!s.config.svg.empty())
      graph_.emplace(layout_->scale());  // the sums are since the beginning
    ended_ns_ = monotonic_ns();
    std::sort(entries.begin(), entries.end(), [&](auto& a, auto& b) {
      if (layout_->value(a.sum) != layout_->value(b.sum))
        return layout_->value(a.sum) < layout_->value(b.sum);
      return memcmp(a.parties.data(), b.parties.data(), a.parties.size() * sizeof(stack_party)) < 0;
    });
    for (auto& e : entries) {
      s.ledger.shown += e.sum.count;
      show(s, e);
    }
    for (auto& [stack, sum] : folded_) s.out.line(fmt::format("{} {}", stack, layout_->shown(sum)));
  }

  Result<void> finish(Session& s) override {
    if (!graph_) return {};
    FlameTitle words{title(s, static_cast<double>(ended_ns_ - s.began_ns) / 1e9),
                     std::string(report_.value_title), s.ledger.losses()};
    words.notes.insert(words.notes.end(), s.plan.limits.begin(), s.plan.limits.end());
    auto svg = graph_->svg(words);
    if (file_) return file_->write(svg);
    s.out.write(svg);
    return {};
  }

  bool keeps_file() const override { return file_.has_value(); }

 private:
  /// A stack that the kernel program keeps, with its names.
  struct Named {
    Frames frames;
    std::string_view cut = {};
    bool missed = false;
  };

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

  const Named& named(Session& s, std::uint64_t id, pid_t tgid, bool kernel) {
    auto [at, is_new] = known_.try_emplace({id, kernel ? 0 : tgid});
    auto& named = at->second;
    if (!is_new || !id) return named;
    stack found{};
    if (bpf_map_lookup_elem(bpf_map__fd(s.map("stacks")), &id, &found)) {
      named.missed = true;
      named.frames = {kernel ? "[Missed Kernel Stack]" : "[Missed User Stack]"};
    } else if (kernel) {
      named.frames = stacks_->kernel(found);
    } else {
      Symbol outermost;
      named.frames = stacks_->user(tgid, found, &outermost);
      named.cut = walker_->cut(found, outermost);
    }
    return named;
  }

  std::vector<StackParty> parties(Session& s, const Entry& e) {
    std::vector<StackParty> all;
    bool missed = false, cut = false;
    for (auto& p : e.parties) {
      auto tgid = static_cast<pid_t>(p.tgid);
      auto& kernel = named(s, p.kernel, tgid, true);
      auto& user = named(s, p.user, tgid, false);
      all.push_back({p, kernel.frames, user.frames, user.cut});
      missed |= kernel.missed || user.missed;
      cut |= !user.cut.empty();
    }
    if (missed) s.ledger.count[LEDGER_STACK_FAILED] += e.sum.count;
    if (cut) s.ledger.count[LEDGER_STACK_CUT] += e.sum.count;
    return all;
  }

  void show(Session& s, const Entry& e) {
    auto all = parties(s, e);
    if (graph_) graph_->add(layout_->path(all), layout_->value(e.sum));
    if (s.config.format == OutputFormat::json) {
      s.out.line(layout_->json(all, e.sum));
    } else if (s.config.format == OutputFormat::csv) {
      s.out.line(layout_->csv(all, e.sum));
    } else if (s.config.given("folded")) {
      // Threads of one name with one stack are one line.
      folded_[layout_->folded(all)] += layout_->value(e.sum);
    } else if (!graph_) {
      for (auto& line : layout_->lines(all)) s.out.line(line);
      s.out.line(fmt::format("        {}\n", layout_->shown(layout_->value(e.sum))));
    }
  }

  const StackReport& report_;
  std::optional<Stacks> stacks_;
  std::optional<StackLayout> layout_;
  std::unique_ptr<StackWalker> walker_;
  std::map<std::pair<std::uint64_t, pid_t>, Named> known_;
  std::map<std::string, std::uint64_t> folded_;
  std::optional<FlameGraph> graph_;
  std::optional<NewFile> file_;
  std::uint64_t ended_ns_ = 0;
};

}  // namespace

std::unique_ptr<Reporter> make(const StackReport& report) {
  return std::make_unique<StackReporter>(report);
}

}  // namespace coretap
