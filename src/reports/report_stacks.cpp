// Stack tools: totals by kernel and user stack, as text, flame graphs, folded stacks, or data.
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/json.hpp"
#include "coretap/parse.hpp"
#include "coretap/report_kind.hpp"
#include "kernel/perf_events.hpp"
#include "program/attach.hpp"
#include "program/maps.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/own_activity.hpp"
#include "reports/reporter.hpp"
#include "stacks/ratio_graph.hpp"
#include "stacks/stack_files.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/stack_sums.hpp"
#include "stacks/stack_tables.hpp"
#include "stacks/wait_rules.hpp"

namespace coretap {

namespace {

using Entry = StackSums::Entry;

/// The time between two samples of the CPUs' clock.
std::uint64_t tick_ns(const Session& s) {
  if (!s.object) return 0;
  for (auto* program : programs_of(s.object.get())) {
    if (!samples(program) || bpf_program__fd(program) < 0) continue;
    auto event = perf_event(event_of(s, program));
    if (!event || !event->is_clock()) return 0;
    auto sampling = sampling_of(s, program);
    return sampling.hz ? 1'000'000'000 / sampling.hz : sampling.period;
  }
  return 0;
}

class StackReporter : public Reporter {
 public:
  explicit StackReporter(const StackReport& report) : report_(report), tables_(report_) {}

  void configure(Session& s) override {
    own_.configure(s);
    tables_.configure(s);
    deltas_ = report_.deltas || s.config.schedule.interval > 0;
    set_variable(s, "stack_kernel", !s.config.given("user-stacks-only"));
    bool user = s.config.holds(report_.user_stacks_when);
    set_variable(s, "stack_user", user);
    names_.configure(
        s,
        {.offsets = s.config.given("offset"),
         .modules = s.config.given("verbose"),
         .located = StackFiles::need_places(s.config) || s.exporter || tables_.need_places(),
         .lines = s.config.given("lines")},
        user);
    layout_.emplace(report_, StackLayout::Style{.annotated = s.config.given("annotations"),
                                                .delimited = s.config.given("delimited"),
                                                .lines = s.config.given("lines"),
                                                .tool = s.tool.name});
    ratio_ = !report_.ratio_when.empty() && s.config.holds(report_.ratio_when);
    reasons_wanted_ = !report_.reasons_when.empty() && s.config.holds(report_.reasons_when);
    if (report_.layout != StackReport::alone) tell_interrupts(s);
  }

  void size_maps(Session& s) override {
    StackNames::size_maps(s);
    for (auto name : {MapName("stacks"), MapName("stack_counts")})
      if (auto* map = s.map(name)) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override { return names_.ready(s); }
  Result<void> open(Session& s) override {
    if (attached_waits(s)) {
      if (auto r = s.source->open_iterator(report_.waits_by); !r) return r;
      adds_waits_ = true;
    }
    if (!report_.event.empty()) {
      for (auto& event : s.config.sampling.events) events_.push_back(event_title(event));
      if (events_.empty()) events_.emplace_back(report_.event);
      if (several() && (s.config.given("screen") || !s.config.files.dot.empty()))
        return usage("--dot and --screen show one event", "sample one event, or leave them out");
    }
    if (ratio_)
      files_.draw_by([this](const PictureTitle& title) {
        return ratios_->svg(title, events_.front(), events_.back());
      });
    if (auto r = tables_.open(s); !r) return r;
    return files_.open(s, values_of(s));
  }

  void begin(Session& s) override {
    tables_.begin(s, several());
    if (s.config.format == OutputFormat::csv && !tables_.replace_stacks())
      s.out.line(layout_->csv_keys());
  }

  // The only records announce processes whose user stack was seen for the first time.
  void record(Session& s, const void* data, std::size_t size) override {
    names_.take(s, data, size);
  }

  // Reading all sums takes longer than reading counters.
  double sample_seconds() const override { return 10; }
  void sample(Session& s) override {
    for (auto& e : StackSums::read(s)) parties(s, e, false);
  }

  void ends(Session& s) override {
    if (!adds_waits_) return;
    if (auto r = s.source->pass(report_.waits_by, 1); !r)
      s.note("waits that are still in progress are not shown", r.error());
  }

  void report(Session& s) override {
    auto entries = deltas_ || s.exporter ? sums_.read_since_last(s) : StackSums::read(s);
    bool text = s.config.format == OutputFormat::text;
    if (deltas_ && text && !tables_.replace_stacks() &&
        (s.config.given("timestamp") || !report_.deltas))
      s.out.line(wall_time());
    if (s.config.format == OutputFormat::json && s.config.schedule.interval > 0 &&
        !tables_.replace_stacks() && !s.exporter)
      s.out.line(JsonLine("report", s.tool.name).text("time", iso_time(monotonic_ns())).finish());
    files_.begin(layout_->scale());
    if (ratio_) ratios_.emplace();
    for (auto& e : entries)
      if (!events_.empty()) e.event = std::exchange(e.parties.front().event, 0);
    std::sort(entries.begin(), entries.end(), [&](auto& a, auto& b) {
      if (a.event != b.event) return a.event < b.event;
      if (waits(a) != waits(b)) return waits(a);
      if (value(a) != value(b)) return value(a) < value(b);
      return memcmp(a.parties.data(), b.parties.data(), a.parties.size() * sizeof(stack_party)) < 0;
    });
    const std::span<const Entry> all = entries;
    const std::size_t apart = ratio_ ? 1 : std::max<std::size_t>(events_.size(), 1);
    for (std::size_t event = 0, at = 0; event < apart; event++) {
      auto end = apart == 1 ? all.size() : at;
      while (end < all.size() && all[end].event == event) end++;
      show(s, all.subspan(at, end - at), apart == 1 ? std::string() : events_[event]);
      at = end;
    }
    if ((deltas_ || s.exporter) && profiling_.use_count() == 1) sums_.forget_idle(s);
    names_.next_report();
  }

  double poll_seconds() const override { return names_.poll_seconds(); }
  void poll(Session& s) override {
    names_.poll(s);
    tables_.poll(s);
  }
  std::vector<int> wakes() const override {
    auto all = names_.wakes(), keys = tables_.wakes();
    all.insert(all.end(), keys.begin(), keys.end());
    return all;
  }
  std::vector<int> signals() const override { return tables_.signals(); }
  void signalled(Session& s, int number) override { tables_.signalled(s, number); }
  bool wants_end() const override { return tables_.wants_end(); }

  Result<void> finish(Session& s) override {
    if (auto r = tables_.finish(s); !r) return r;
    return files_.finish(s, ratio_ ? events_.front() : report_.value_title);
  }
  bool keeps_file() const override { return files_.keeps_file() || tables_.keeps_file(); }

  MakeProfile profile(Session& s, bool from_now) override {
    auto before = std::make_shared<StackSums::Sums>();
    if (from_now) StackSums::read_since(s, *before);
    // While this object exists, no sum is removed.
    auto stay = from_now ? profiling_ : nullptr;
    return [this, stay, before, began = from_now ? monotonic_ns() : s.began_ns](Session& s) {
      auto profile = files_.profile();
      for (auto& e : StackSums::read_since(s, *before))
        if (!own_.is(e.parties.front().tgid)) {
          if (!events_.empty()) e.event = std::exchange(e.parties.front().event, 0);
          auto all = parties(s, e, false);
          profile.add(layout_->path(all), labels(all), values(e));
        }
      names_.next_report();
      auto left_out = stay ? 0 : sums_.forgotten().count;
      return profile.finish(s, began, monotonic_ns(), left_out);
    };
  }

 private:
  static bool waits(const Entry& e) { return e.parties.front().waiting != 0; }
  bool several() const { return events_.size() > 1; }
  /// By --ratio the events that the samples stand for.
  std::uint64_t value(const Entry& e) const {
    return ratio_ ? e.sum.total_ns : layout_->value(e.sum);
  }

  /// Those of one event, which is empty if there is only one.
  void show(Session& s, std::span<const Entry> entries, const std::string& event) {
    tables_.begin_report(event);
    const bool lists = s.config.format == OutputFormat::text && !s.config.given("folded") &&
                       !s.exporter && !files_.wanted();
    if (!event.empty() && lists && !tables_.screen()) s.out.line(fmt::format("event: {}", event));
    for (auto& e : entries) {
      if (own_.is(e.parties.front().tgid)) {
        s.ledger.count[LEDGER_FILTERED] += e.sum.count;
        continue;
      }
      if (s.exporter || show(s, e))
        s.ledger.shown += e.sum.count;
      else
        s.ledger.count[LEDGER_FILTERED] += e.sum.count;
    }
    for (auto& [stack, sum] : std::exchange(folded_, {}))
      s.out.line(fmt::format("{} {}", stack, layout_->shown(sum)));
    if (tables_.replace_stacks() && !s.exporter) tables_.show(s, *layout_);
  }

  bool attached_waits(const Session& s) const {
    if (report_.waits_by.empty() || !s.object) return false;
    auto* program = bpf_object__find_program_by_name(s.object.get(), report_.waits_by.c_str());
    return program && bpf_program__fd(program) >= 0;
  }
  StackFiles::Values values_of(const Session& s) {
    constexpr PprofProfile::Type kSamples{"samples", "count"};
    switch (report_.measure) {
      case StackReport::time:
        return {{{"contentions", "count"}, {"delay", "nanoseconds"}}};
      case StackReport::bytes:
        return {{{"alloc_objects", "count"}, {"alloc_space", "bytes"}}};
      default:
        if (several()) {
          StackFiles::Values all;
          for (auto& event : events_) all.types.push_back({event, "count"});
          return all;
        }
        if (!report_.event.empty())
          tick_ns_ = parse_unsigned(recalled(Ask::tick, "", [&] {
                       return std::to_string(tick_ns(s));
                     })).value_or(0);
        if (!tick_ns_) return {{kSamples}};
        return {{kSamples, {"cpu", "nanoseconds"}}, tick_ns_};
    }
  }
  std::vector<std::uint64_t> values(const Entry& e) const {
    auto& sum = e.sum;
    if (several()) {
      std::vector<std::uint64_t> all(events_.size());
      all.at(e.event) = sum.count;
      return all;
    }
    if (report_.measure != StackReport::samples) return {sum.count, sum.total_ns};
    return {sum.count, sum.count * tick_ns_};
  }

  static PprofProfile::Task labels(const std::vector<StackParty>& parties) {
    return {parties.front().name(), parties.front().who.tgid};
  }

  /// `counts`: the entry is shown, so its stack defects go into the ledger.
  std::vector<StackParty> parties(Session& s, const Entry& e, bool counts = true) {
    std::vector<StackParty> all;
    bool missed = false;
    std::string_view cut;
    std::uint32_t guessed = 0;
    for (auto& p : e.parties) {
      auto& kernel = names_.kernel(s, p.kernel);
      auto& user = names_.user(s, p.user, static_cast<pid_t>(p.tgid));
      all.push_back(
          {p, kernel.frames, user.frames, user.cut, user.guessed, kernel.places, user.places});
      missed |= kernel.missed || user.missed;
      if (cut.empty()) cut = user.cut;
      guessed += user.guessed;
    }
    for (auto& p : all) p.group = tables_.group().name(s, p);
    if (reasons_wanted_ && all.front().who.state == STACK_TASK) {
      auto [known, fresh] = reasons_.try_emplace(all.front().who.kernel);
      if (fresh) known->second = reason_of_stack(all.front().kernel);
      all.front().reason = known->second;
    }
    if (!counts) return all;
    s.ledger.user_stack(cut, guessed, e.sum.count);
    if (missed) s.ledger.count[LEDGER_STACK_FAILED] += e.sum.count;
    return all;
  }

  /// False: not a stack of the function that was asked for.
  bool show(Session& s, const Entry& e) {
    auto all = parties(s, e);
    std::vector<StackWord> path;
    if (files_.wanted() || tables_.need_paths() || s.config.given("folded")) {
      path = layout_->path(all);
      if (!tables_.part().take(path)) return false;
    }
    tables_.add(all, path, value(e), ratio_ && e.event);
    if (ratio_ && files_.wanted()) ratios_->add(path, value(e), e.event);
    const bool apart = several() && !ratio_;
    files_.add(path, labels(all), value(e), values(e), apart ? events_[e.event] : std::string());
    if (tables_.replace_stacks()) return true;
    const std::string_view event = events_.empty() ? std::string_view() : events_[e.event];
    if (s.config.format == OutputFormat::json) {
      s.out.line(layout_->json(all, e.sum, event));
    } else if (s.config.format == OutputFormat::csv) {
      s.out.line(layout_->csv(all, e.sum, event));
    } else if (s.config.given("folded")) {
      // Threads with the same name and stack share a line.
      if (apart) path = below(events_[e.event], std::move(path));
      folded_[layout_->folded(path)] += value(e);
    } else if (!files_.wanted() && s.config.files.dot.empty()) {
      for (auto& line : layout_->lines(all)) s.out.line(line);
      s.out.line(fmt::format("        {}\n", layout_->shown(value(e))));
    }
    return true;
  }

  const StackReport& report_;
  StackTables tables_;
  bool deltas_ = false;  ///< reports are of the time since the last one
  OwnActivity own_;
  StackNames names_;
  std::optional<StackLayout> layout_;
  std::map<std::string, std::uint64_t> folded_;
  StackFiles files_;
  bool reasons_wanted_ = false;
  std::map<std::uint64_t, std::size_t> reasons_;  ///< of kernel stacks
  std::vector<std::string> events_;               ///< that are sampled
  bool ratio_ = false;                            ///< of the first event to the second
  std::optional<RatioGraph> ratios_;
  std::uint64_t tick_ns_ = 0;  ///< the time that a sample counts for; 0: none
  bool adds_waits_ = false;    ///< adds waits in progress when tracing ends
  StackSums sums_;
  std::shared_ptr<bool> profiling_ = std::make_shared<bool>();  ///< shared by profiles in progress
};

const char* entry_words(const StackReport& r) {
  switch (r.layout) {
    case StackReport::waker:
      return "Each has a line with the name of the task, the frames in which it was woken, the "
             "innermost first; a line with the name of the waker; and the sum.";
    case StackReport::chain:
      return "Each has, for each waker from the most distant one to the nearest, a line with its "
             "name and thread id and its frames, the outermost first; then the frames in which "
             "the task blocked, the innermost first; a line with its name and thread id; and the "
             "sum. If the waker is not a task, [irq], [softirq] or [idle] replaces the name.";
    default:
      return "Each has the frames of the kernel stack, then those of the user stack, the innermost "
             "first; a line with the name and, in parentheses, the id; and the sum.";
  }
}

const char* folded_words(const StackReport& r) {
  switch (r.layout) {
    case StackReport::waker:
      return "With --folded each entry is a line: the waker, its frames, outermost first, and the "
             "task, joined by semicolons, and the sum.";
    case StackReport::chain:
      return "With --folded each entry is a line: the task, its frames, outermost first, then for "
             "each waker --, its frames, innermost first, and its name, joined by semicolons, and "
             "the sum.";
    default:
      return "With --folded each entry is a line: name and frames, outermost first, joined by "
             "semicolons, and the sum.";
  }
}

std::vector<OutputKey> stack_owner() {
  return {key("comm", "string", "command name"),
          key("pid", "integer or null", "process; null: stacks are not by process"),
          key("tid", "integer or null", "thread; null: stacks are not by thread")};
}

void add(std::vector<OutputKey>& to, const std::vector<OutputKey>& keys) {
  to.insert(to.end(), keys.begin(), keys.end());
}

class StackKind : public ReportKind {
 public:
  explicit StackKind(StackReport report) : report_(report) {}

  std::string_view name() const override { return "stacks"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<StackReporter>(report_);
  }
  MetricShape metrics(const Config&) const override { return {.kind = MetricShape::stacks}; }
  bool kernel_symbols() const override { return true; }
  bool can_be_recorded() const override { return true; }
  bool names_processes() const override { return true; }
  bool adds_up() const override { return true; }
  Result<void> check(Config& c) const override { return StackTables::check(c); }
  std::vector<std::string_view> conditions() const override {
    return {report_.user_stacks_when, report_.reasons_when, report_.ratio_when};
  }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"stack", "one per stack and thread, the largest sum last", {type_key("stack")}};
    add(kind.keys, stack_owner());
    add(kind.keys, event());
    add(kind.keys, marks());
    add(kind.keys, reason(" or null"));
    kind.keys.push_back(kernel_stack_key());
    add(kind.keys, user_stack_keys());
    add(kind.keys, frame_line_keys());
    if (report_.layout != StackReport::alone) {
      std::vector<OutputKey> waker = {
          key("context", "string", "task, or what is not a task: irq, softirq, idle")};
      add(waker, stack_owner());
      waker.push_back(kernel_stack_key());
      add(waker, user_stack_keys());
      add(waker, frame_line_keys());
      kind.keys.push_back(key("wakers", "array of objects",
                              "the waker of the task, the waker of that one, ...", {},
                              std::move(waker)));
    }
    add(kind.keys, sums());
    std::vector<JsonKind> all{
        std::move(kind),
        {"report", "with --interval, before the lines of each", {type_key("report"), time_key()}}};
    for (auto& table : StackTables::json(report_)) all.push_back(std::move(table));
    return all;
  }

  std::vector<OutputKey> csv() const override {
    auto all = stack_owner();
    add(all, event());
    add(all, marks());
    add(all, sums());
    all.push_back(
        key("stack", "string", "folded: command, user and kernel frames, outermost first"));
    add(all, reason(""));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose("Entries come in the order of their sums, the largest last.");
    if (waits())
      m.prose(
          "Waits that are in progress when tracing ends come first, marked [still waiting], with "
          "the time until then. Waits that were already in progress when tracing started count "
          "from its start: those of tasks that a filter names, and without a filter those of "
          "tasks that can run or are in uninterruptible sleep (state D). Their user stacks are "
          "not known.");
    m.prose(entry_words(report_));
    m.prose(fmt::format("The sum is in {}.", report_.value_title));
    if (m.has_option("folded")) m.prose(folded_words(report_));
    if (!report_.reasons_when.empty())
      m.prose(
          "With --reasons the frame [REASON] follows that in which the task blocked. Reasons are "
          "those of walltime, from the names in the kernel stack only: a wait for a lock of the "
          "kernel has the reason of its caller, or is [other].");
    StackTables::manual(m);
    StackFiles::manual(m);
  }

 private:
  bool timed() const { return report_.measure == StackReport::time; }
  bool waits() const { return !report_.waits_by.empty(); }
  std::vector<OutputKey> event() const {
    if (report_.event.empty()) return {};
    return {key("event", "string", "the event that was sampled")};
  }
  std::vector<OutputKey> marks() const {
    std::vector<OutputKey> all;
    if (timed()) all.push_back(key("runnable", "boolean", "preempted rather than blocked"));
    if (waits())
      all.push_back(key("still_waiting", "boolean", "the wait was in progress when tracing ended"));
    return all;
  }
  std::vector<OutputKey> reason(const std::string& unknown) const {
    if (report_.reasons_when.empty()) return {};
    return {key("reason", "string" + unknown, "with --reasons, what the wait was for")
                .as(Meaning::label)};
  }
  std::vector<OutputKey> sums() const {
    std::vector<OutputKey> all;
    if (timed())
      all.push_back(key("total_ns", "integer", "sum of the times").as(Meaning::sum, "count"));
    if (report_.measure == StackReport::bytes)
      all.push_back(key("bytes", "integer", "sum of the bytes").as(Meaning::sum, "count"));
    all.push_back(key("count", "integer", "how often").as(Meaning::sum));
    return all;
  }

  StackReport report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(StackReport report) {
  return std::make_shared<StackKind>(report);
}

}  // namespace coretap
