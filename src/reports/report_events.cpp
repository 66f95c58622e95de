// Event tools: one line per record, printed as it arrives.
#include <bpf/libbpf.h>

#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/rate_limit.hpp"
#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "metrics/exporter.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/event_trace.hpp"
#include "reports/lacking.hpp"
#include "reports/own_activity.hpp"
#include "reports/reporter.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/stacks.hpp"
#include "symbols/recalled_symbol.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

/// Function names of processes, by the addresses in records (struct user_code).
class UserFunctions {
 public:
  /// Before load. Sets FieldContext::user_function of this session.
  explicit UserFunctions(Session& s) {
    s.retained.add(
        {Capability::sys_ptrace, Capability::dac_read_search, Capability::checkpoint_restore});
    s.names.context.user_function = [this](const user_code& code) { return name(code); };
  }

 private:
  static constexpr std::size_t kManyProcesses = 4096;

  std::string name(const user_code& code) {
    auto pid = static_cast<pid_t>(code.pid);
    if (images_.size() > kManyProcesses) images_.clear();
    auto [known, is_new] = images_.try_emplace(code.pid, code.image);
    if (is_new || known->second != code.image) {
      known->second = code.image;
      if (!replaying()) symbols_.remember(pid, 0, code.image, code.stack_begin);
    }
    auto live = [&] { return symbols_.find(pid, code.address, true, code.image); };
    auto symbol =
        recall ? symbols::recalled(Ask::user_symbol, {code.pid, code.image, code.address, 1}, live)
               : live();
    return symbol.known() ? symbol.name : fmt::format("{:#x}", code.address);
  }

  UserSymbols symbols_;
  std::map<std::uint32_t, std::uint32_t> images_;  ///< of processes whose mappings are known
};

class EventReporter : public Reporter {
 public:
  explicit EventReporter(const EventReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields, report_.orders);
    own_.configure(s, report_.fields);
    for (auto& t : report_.times)
      if (s.config.holds(t.when) && (t.unless.empty() || !s.config.given(t.unless)))
        times_.push_back(&t);
    with_callers_ = !report_.callers_when.empty() && s.config.given(report_.callers_when);
    set_variable(s, "stack_user", with_callers_);
    const bool addresses = s.config.given("address");
    if (with_callers_)
      callers_.configure(s, {.modules = s.config.given("verbose"), .addresses = addresses}, true);
    with_stack_ = !report_.stack_when.empty() && s.config.holds(report_.stack_when);
    if (with_stack_) stacks_.emplace(Stacks::Style{.offsets = true, .addresses = addresses});
    set_variable(s, "stack_on", with_stack_);
    if (report_.names_user_functions) functions_.emplace(s);
    set_variable(s, "stack_depth", s.stack_depth());
    if (s.config.events.per_second) rate_.emplace(s.config.events.per_second);
  }

  void size_maps(Session& s) override {
    StackNames::size_maps(s);
    if (auto* map = s.map(MapName("stacks")); map && with_callers_) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override { return callers_.ready(s); }
  Result<void> open(Session& s) override {
    auto opened = trace_.open(s);
    if (trace_) traced_.choose(s, report_.fields, report_.span, report_.from_begin);
    return opened;
  }
  bool periodic() const override { return false; }
  double poll_seconds() const override { return callers_.poll_seconds(); }
  void poll(Session& s) override {
    callers_.poll(s);
    trace_.check(s);
  }
  Result<void> finish(Session& s) override {
    trace_.finish(s);
    return {};
  }
  bool keeps_file() const override { return static_cast<bool>(trace_); }
  std::vector<int> wakes() const override { return callers_.wakes(); }

  void hurry() override { hurried_ = true; }
  bool wants_end() const override { return enough_; }

  void begin(Session& s) override {
    if (!s.prints()) return;
    if (s.config.format == OutputFormat::csv)
      s.out.line("time,monotonic_ns," + columns_.keys() + (with_stack_ ? ",kernel_stack" : "") +
                 (with_callers_ ? ",user_stack" : ""));
    else if (s.config.format == OutputFormat::text)
      s.out.title(titles());
  }

  void record(Session& s, const void* data, std::size_t size) override {
    if (with_callers_ && callers_.take(s, data, size)) return;
    if (size < report_.record_size) return;
    if (s.recorder) ask_all(report_.fields, data, s.names);
    if (hurried_) {
      s.ledger.unread++;
      return;
    }
    if (own_.is(data, s.names.context) || (report_.wanted && !report_.wanted(s.config, data))) {
      s.ledger.count[LEDGER_FILTERED]++;
      return;
    }
    if (enough(s)) {
      s.ledger.count[LEDGER_FILTERED]++;
      return;
    }
    auto* head = static_cast<const event_head*>(data);
    if ((rate_ && !rate_->take(head->time_ns)) || (s.exporter && !s.exporter->has_room())) {
      s.ledger.limited++;
      return;
    }
    const stack* frames = nullptr;
    if (with_stack_ && size >= report_.record_size + sizeof(stack))
      frames = reinterpret_cast<const stack*>(static_cast<const char*>(data) + report_.record_size);
    s.ledger.shown++;
    enough_ = enough(s);
    if (s.exporter) s.exporter->add(s, data);
    const bool prints = s.prints() || (s.exporter && s.exporter->pushes_events());
    if (!prints && s.recorder && frames) kernel_frames(s, *stacks_, *frames);  // asks for names
    if (!prints && !trace_) return;
    const Shown shown{*head, data, frames, with_callers_ ? &callers(s, data) : nullptr};
    if (trace_) trace(s, shown);
    if (!prints) return;
    if (s.config.format == OutputFormat::json)
      json(s, shown);
    else if (s.config.format == OutputFormat::csv)
      csv(s, shown);
    else
      text(s, shown);
  }

 private:
  static bool enough(const Session& s) {
    return s.config.events.most && s.ledger.shown >= s.config.events.most;
  }

  std::string titles() const {
    std::string line;
    for (auto* t : times_) line += fmt::format("{:<{}} ", t->title, t->width);
    return columns_.titles({line, report_.columns_before_times});
  }

  static std::string time(const Session& s, const TimeColumn& column, std::uint64_t at) {
    if (column.kind == TimeColumn::wall) return fmt::format("{:<{}} ", wall_time(at), column.width);
    if (column.kind == TimeColumn::utc) return fmt::format("{:<{}} ", utc_time(at), column.width);
    auto since = at - std::min<std::uint64_t>(s.began_ns, at);
    if (column.kind == TimeColumn::milliseconds)
      return fmt::format("{:<{}} ", since / 1'000'000, column.width);
    return fmt::format("{:<{}.6f} ", static_cast<double>(since) / 1e9, column.width);
  }

  struct Shown {
    const event_head& head;
    const void* data;
    const stack* frames;            ///< nullptr: without kernel stack
    const StackNames::Named* user;  ///< nullptr: without user stack
  };

  void text(Session& s, const Shown& e) {
    std::string line;
    for (auto* t : times_) line += time(s, *t, e.head.time_ns);
    s.out.line(columns_.row(e.data, s.names, {line, report_.columns_before_times}));
    for (auto& below : columns_.below(e.data, s.names)) s.out.line(below);
    if (e.frames)
      for (auto& frame : kernel_frames(s, *stacks_, *e.frames)) s.out.line(frame_line(frame));
    if (e.user) {
      for (auto& frame : e.user->frames) s.out.line(frame_line(frame));
      if (auto marks = stack_marks(e.user->cut, e.user->guessed); !marks.empty())
        s.out.line("        " + marks);
    }
    if (e.frames || e.user) s.out.write("\n");
  }

  void json(Session& s, const Shown& e) {
    JsonLine line("event", s.tool.name);
    line.text("time", iso_time(e.head.time_ns)).number("monotonic_ns", e.head.time_ns);
    columns_.json(line, e.data, s.names);
    if (e.frames) line.texts("kernel_stack", kernel_frames(s, *stacks_, *e.frames));
    if (e.user) json_user_stack(line, e.user->frames, e.user->cut, e.user->guessed);
    auto text = line.finish();
    if (s.prints()) s.out.line(text);
    if (s.exporter) s.exporter->add_event(text);
  }

  void csv(Session& s, const Shown& e) {
    auto row = fmt::format("{},{},{}", iso_time(e.head.time_ns), e.head.time_ns,
                           columns_.csv(e.data, s.names));
    if (with_stack_)
      row += ',' + csv_field(e.frames ? folded(kernel_frames(s, *stacks_, *e.frames)) : "");
    if (e.user)
      row +=
          ',' + csv_field(folded(e.user->frames, e.user->cut.empty() ? "" : cut_mark(e.user->cut)));
    s.out.line(row);
  }

  void trace(Session& s, const Shown& e) {
    auto event = traced_.read(s, e.head.time_ns, e.data);
    std::string kernel, user;
    if (e.frames) {
      kernel = folded(kernel_frames(s, *stacks_, *e.frames));
      event.arguments.push_back({"kernel_stack", std::string_view(kernel)});
    }
    if (e.user) {
      user = folded(e.user->frames);
      event.arguments.push_back({"user_stack", std::string_view(user)});
    }
    trace_.add(s, event);
  }

  const StackNames::Named& callers(Session& s, const void* data) {
    auto& user =
        callers_.user(s, report_.callers(data), static_cast<pid_t>(report_.callers_of(data)));
    if (user.missed) s.ledger.count[LEDGER_STACK_FAILED]++;
    s.ledger.user_stack(user.cut, user.guessed, 1);
    return user;
  }

  const EventReport& report_;
  OwnActivity own_;
  Columns columns_;
  std::vector<const TimeColumn*> times_;
  std::optional<Stacks> stacks_;
  StackNames callers_;
  std::optional<UserFunctions> functions_;
  std::optional<RateLimit> rate_;
  TracedFields traced_;
  EventTrace trace_;
  bool with_stack_ = false, with_callers_ = false;
  bool hurried_ = false;
  bool enough_ = false;  ///< reached --max-events
};

constexpr std::uint64_t kRing = 128 << 10;
constexpr std::uint64_t kRingWithStacks = 1 << 20;
// Room for the events of a process while the reader waits for a CPU.
constexpr std::uint64_t kRingOfHighRate = 2 << 20;

const char* time_words(const TimeColumn& t) {
  if (t.kind == TimeColumn::utc) return "the time of day in UTC";
  if (t.kind == TimeColumn::milliseconds) return "the milliseconds since tracing began";
  return t.kind == TimeColumn::wall ? "the time of day" : "the seconds since tracing began";
}

class EventKind : public ReportKind {
 public:
  explicit EventKind(EventReport report) : report_(std::move(report)) {}

  std::string_view name() const override { return "event"; }
  MetricShape metrics(const Config&) const override {
    return {.kind = MetricShape::events, .fields = report_.fields};
  }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<EventReporter>(report_);
  }
  std::vector<Field> fields() const override {
    return in_columns(report_.fields, report_.orders, Config());
  }
  std::size_t record_size() const override { return report_.record_size; }
  std::string_view record_type() const override { return report_.type; }
  std::shared_ptr<const ReportKind> without(const std::vector<Lacking>& lacking,
                                            std::vector<std::string>& said) const override {
    auto report = report_;
    leave_empty(report.fields, report.record_size, lacking, said);
    return std::make_shared<EventKind>(std::move(report));
  }
  bool can_be_recorded() const override { return true; }
  bool has_events() const override { return true; }
  std::vector<std::string_view> conditions() const override {
    std::vector<std::string_view> all = {report_.stack_when, report_.callers_when};
    for (auto& order : report_.orders) all.push_back(order.when);
    for (auto& time : report_.times)
      if (time.when != "timestamp") all.insert(all.end(), {time.when, time.unless});
    return all;
  }
  bool kernel_symbols() const override { return !report_.stack_when.empty(); }
  std::uint64_t ring_bytes(const Config& config) const override {
    if (report_.high_rate_events) return kRingOfHighRate;
    bool stacks = !report_.stack_when.empty() && config.holds(report_.stack_when);
    return stacks ? kRingWithStacks : kRing;
  }
  std::string_view ring_doc() const override {
    return report_.high_rate_events ? "ring buffer size (default: 2M)"
                                    : "ring buffer size (default: 128K, 1M with stacks)";
  }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"event", "one per event", {type_key("event"), time_key(), monotonic_key()}};
    for (auto& f : report_.fields)
      if (!f.table_only) {
        kind.keys.push_back(key(f, report_.record_size, f.only_with));
        if (f.key == report_.span) kind.keys.back().meaning = Meaning::duration;
      }
    if (!report_.stack_when.empty()) kind.keys.push_back(kernel_stack_key(report_.stack_when));
    if (!report_.callers_when.empty())
      for (auto& k : user_stack_keys(report_.callers_when)) kind.keys.push_back(k);
    return {kind};
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key(), monotonic_key()};
    for (auto& f : report_.fields)
      if (!f.table_only) all.push_back(csv_key(f, report_.record_size, f.only_with));
    if (!report_.stack_when.empty()) all.push_back(folded_kernel_stack_key(report_.stack_when));
    if (!report_.callers_when.empty())
      all.push_back(key("user_stack", "string",
                        "user stack, outermost function first, joined by semicolons",
                        report_.callers_when));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose("One line per event; the columns' keys in JSON and CSV are in parentheses.");
    for (auto& t : report_.times) {
      if (t.when.empty() || t.when.front() == '!')
        m.prose(fmt::format("{} is {}.", t.title, time_words(t)));
      else if (m.has_option(t.when))
        m.prose(fmt::format("With --{} each line starts with {}.", t.when, time_words(t)));
    }
    if (!report_.stack_when.empty()) {
      bool without = report_.stack_when.starts_with('!');
      m.prose(fmt::format("{} --{} the kernel stack follows, the innermost function first.",
                          without ? "Without" : "With", report_.stack_when.substr(without)));
    }
    if (!report_.callers_when.empty())
      m.prose(fmt::format("With --{} the user stack follows, the innermost function first.",
                          report_.callers_when));
    m.fields(fields());
  }

 private:
  EventReport report_;
};

}  // namespace

Report::Report() : Report(EventReport{}) {}

std::shared_ptr<const ReportKind> make_kind(EventReport report) {
  return std::make_shared<EventKind>(std::move(report));
}

}  // namespace coretap
