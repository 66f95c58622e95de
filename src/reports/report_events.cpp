// Event tools: one line per record, as it comes.
#include <bpf/libbpf.h>

#include <cstring>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/reporters.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/stacks.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

class EventReporter : public Reporter {
 public:
  explicit EventReporter(const EventReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields);
    for (auto& t : report_.times)
      if (s.config.holds(t.when)) times_.push_back(&t);
    with_callers_ = !report_.callers_when.empty() && s.config.given(report_.callers_when);
    set_variable(s, "stack_user", with_callers_);
    if (with_callers_) callers_.configure(s, {.modules = s.config.given("verbose")}, true);
    with_stack_ = !report_.stack_when.empty() && s.config.given(report_.stack_when);
    if (with_stack_) stacks_.emplace(Stacks::Style{.offsets = true});
    set_variable(s, "stack_on", with_stack_);
    set_variable(s, "stack_depth", s.stack_depth());
  }

  void size_maps(Session& s) override { StackNames::size_maps(s); }
  Result<void> ready(Session& s) override { return callers_.ready(s); }
  bool periodic() const override { return false; }
  double poll_seconds() const override { return callers_.poll_seconds(); }
  void poll(Session& s) override { callers_.poll(s); }
  std::vector<int> wakes() const override { return callers_.wakes(); }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("time,monotonic_ns," + columns_.keys() + (with_stack_ ? ",kernel_stack" : "") +
                 (with_callers_ ? ",user_stack" : ""));
    else if (s.config.format == OutputFormat::text)
      s.out.line(titles());
  }

  void record(Session& s, const void* data, std::size_t size) override {
    if (with_callers_ && size == sizeof(stack_process)) {
      callers_.meet(s, *static_cast<const stack_process*>(data));
      return;
    }
    if (size < report_.record_size) return;
    if (report_.wanted && !report_.wanted(s.config, data)) {
      s.ledger.count[LEDGER_FILTERED]++;
      return;
    }
    auto* head = static_cast<const event_head*>(data);
    const stack* frames = nullptr;
    if (with_stack_ && size >= report_.record_size + sizeof(stack))
      frames = reinterpret_cast<const stack*>(static_cast<const char*>(data) + report_.record_size);
    s.ledger.shown++;
    if (s.config.format == OutputFormat::json)
      json(s, *head, data, frames);
    else if (s.config.format == OutputFormat::csv)
      csv(s, *head, data, frames);
    else
      text(s, *head, data, frames);
  }

 private:
  std::string titles() const {
    std::string line;
    for (auto* t : times_) line += fmt::format("{:<{}} ", t->title, t->width);
    return line + columns_.titles();
  }

  static std::string time(const Session& s, const TimeColumn& column, std::uint64_t at) {
    if (column.kind == TimeColumn::wall) return fmt::format("{:<{}} ", wall_time(at), column.width);
    auto since = at - std::min<std::uint64_t>(s.began_ns, at);
    return fmt::format("{:<{}.6f} ", static_cast<double>(since) / 1e9, column.width);
  }

  void text(Session& s, const event_head& head, const void* data, const stack* frames) {
    std::string line;
    for (auto* t : times_) line += time(s, *t, head.time_ns);
    s.out.line(line + columns_.row(data, s.names));
    if (frames)
      for (auto& frame : kernel_frames(s, *stacks_, *frames))
        s.out.line("        " + printable(frame));
    if (with_callers_) {
      auto& user = callers(s, data);
      for (auto& frame : user.frames) s.out.line("        " + printable(frame));
      if (auto marks = stack_marks(user.cut, user.guessed); !marks.empty())
        s.out.line("        " + marks);
    }
    if (frames || with_callers_) s.out.write("\n");
  }

  void json(Session& s, const event_head& head, const void* data, const stack* frames) {
    JsonLine line;
    line.text("type", "event")
        .text("time", iso_time(head.time_ns))
        .number("monotonic_ns", head.time_ns);
    columns_.json(line, data, s.names);
    if (frames) {
      line.key("kernel_stack").begin_array();
      for (auto& frame : kernel_frames(s, *stacks_, *frames)) line.text(frame);
      line.end_array();
    }
    if (with_callers_) {
      auto& user = callers(s, data);
      json_user_stack(line, user.frames, user.cut, user.guessed);
    }
    s.out.line(line.finish());
  }

  /// Outermost first, behind what is marked there.
  static std::string folded(std::string line, const Frames& frames) {
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      line += (line.empty() ? "" : ";") + folded_word(*frame);
    return line;
  }

  void csv(Session& s, const event_head& head, const void* data, const stack* frames) {
    auto row =
        fmt::format("{},{},{}", iso_time(head.time_ns), head.time_ns, columns_.csv(data, s.names));
    if (with_stack_)
      row += ',' + csv_field(frames ? folded({}, kernel_frames(s, *stacks_, *frames)) : "");
    if (with_callers_) {
      auto& user = callers(s, data);
      row += ',' + csv_field(folded(user.cut.empty() ? "" : cut_mark(user.cut), user.frames));
    }
    s.out.line(row);
  }

  const StackNames::Named& callers(Session& s, const void* data) {
    auto& user =
        callers_.user(s, report_.callers(data), static_cast<pid_t>(report_.callers_of(data)));
    if (user.missed) s.ledger.count[LEDGER_STACK_FAILED]++;
    s.ledger.user_stack(user.cut, user.guessed, 1);
    return user;
  }

  const EventReport& report_;
  Columns columns_;
  std::vector<const TimeColumn*> times_;
  std::optional<Stacks> stacks_;
  StackNames callers_;
  bool with_stack_ = false, with_callers_ = false;
};

}  // namespace

std::unique_ptr<Reporter> make(const EventReport& report) {
  return std::make_unique<EventReporter>(report);
}

}  // namespace coretap
