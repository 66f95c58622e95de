#include "stacks/stack_layout.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "coretap/json.hpp"
#include "coretap/sanitize.hpp"
#include "stacks/wait_rules.hpp"

namespace coretap {

namespace {

constexpr char kRunnable[] = "[runnable]";  // preempted: waits for a CPU, not for an event
constexpr char kStillWaiting[] = "[still waiting]";
constexpr char kApart[] = "--";  // between the stacks of two tasks

constexpr std::string_view kTask = "task";

/// Null if only a name is known, or for a context other than a task.
void json_ids(JsonLine& line, const stack_party& who) {
  line.number_if(who.tid, "pid", who.tgid);
  line.number_if(who.tid, "tid", who.tid);
}

StackWord::Kind color_of(WaitClass of) {
  switch (of) {
    case WaitClass::disk:
      return StackWord::disk;
    case WaitClass::memory:
      return StackWord::memory;
    case WaitClass::lock:
      return StackWord::lock;
    case WaitClass::peer:
      return StackWord::peer;
    case WaitClass::work:
      return StackWord::work;
    default:
      return StackWord::other;
  }
}

std::string_view reason_of(const StackParty& p) {
  return p.reason ? wait_reasons()[*p.reason].name : "";
}

/// "    waker:           bash 1234"
std::string title(std::string_view role, const StackParty& p, bool with_id) {
  auto line = fmt::format("    {:<16} {}", role, printable(p.name()));
  return with_id && p.who.tid ? fmt::format("{} {}", line, p.who.tid) : line;
}

}  // namespace

std::string_view context_of(std::uint32_t state) {
  switch (state) {
    case STACK_IDLE:
      return "idle";
    case STACK_IRQ:
      return "irq";
    case STACK_SOFTIRQ:
      return "softirq";
    default:
      return kTask;
  }
}

std::string cut_mark(std::string_view why) { return fmt::format("[truncated: {}]", why); }

std::string stack_marks(std::string_view cut, std::uint32_t guessed) {
  std::string marks = cut.empty() ? "" : cut_mark(cut);
  if (guessed) marks += fmt::format("{}[guessed frames: {}]", marks.empty() ? "" : " ", guessed);
  return marks;
}

void json_user_stack(JsonLine& line, const Frames& frames, std::string_view cut,
                     std::uint32_t guessed) {
  line.texts("user_stack", frames).text_if(!cut.empty(), "user_stack_truncated", cut);
  line.number("user_stack_guessed", guessed);
}

void json_frames(JsonLine& line, const StackParty& p, bool lines) {
  line.texts("kernel_stack", p.kernel);
  json_user_stack(line, p.user, p.cut, p.guessed);
  if (!lines) return;
  for (auto& [key, places] :
       {std::pair("kernel_frames", p.kernel_places), {"user_frames", p.user_places}}) {
    line.key(key).begin_array();
    for (auto& f : places) {
      line.begin_object().text_if(!f.function.empty(), "function", f.function);
      line.text_if(!f.source.empty(), "file", f.source).number_if(f.line != 0, "line", f.line);
      line.boolean("inlined", f.inlined).end_object();
    }
    line.end_array();
  }
}

std::vector<OutputKey> frame_line_keys() {
  const std::vector<OutputKey> members = {
      key("function", "string or null", "its name; null: unknown"),
      key("file", "string or null", "its source file with the directory; null: unknown"),
      key("line", "integer or null", "the line that runs, or that of the call; null: unknown"),
      key("inlined", "boolean", "the compiler made it a part of the next frame's function")};
  return {key("kernel_frames", "array of objects", "frames of kernel_stack", "lines", members),
          key("user_frames", "array of objects", "frames of user_stack", "lines", members)};
}

std::string StackParty::name() const {
  if (!group.empty()) return group;
  if (auto other = context_of(who.state); other != kTask) return fmt::format("[{}]", other);
  return {who.comm, strnlen(who.comm, sizeof who.comm)};
}

std::uint64_t StackLayout::value(const stack_sum& sum) const {
  return report_.measure == StackReport::samples ? sum.count : sum.total_ns;
}

std::uint64_t StackLayout::scale() const { return report_.measure == StackReport::time ? 1000 : 1; }

std::string StackLayout::word(const StackWord& frame) const {
  return style_.annotated ? fmt::format("{}{}", frame.text, annotation_of(code_of(frame)))
                          : frame.text;
}

/// Frames from the outermost to the leaf.
void StackLayout::down(std::vector<StackWord>& path, const StackParty& p, bool waker) const {
  if (!p.cut.empty()) path.push_back({StackWord::mark, waker, cut_mark(p.cut)});
  for (auto i = p.user.size(); i-- > 0;) path.push_back(user_word(p, i, waker));
  if (style_.delimited && !p.user.empty() && !p.kernel.empty())
    path.push_back({StackWord::mark, waker, "-"});
  for (auto i = p.kernel.size(); i-- > 0;) path.push_back(kernel_word(p, i, waker));
}

StackWord StackLayout::user_word(const StackParty& p, std::size_t i, bool waker) const {
  return {StackWord::user, waker, p.user[i],
          i < p.user_places.size() ? &p.user_places[i] : nullptr};
}

StackWord StackLayout::kernel_word(const StackParty& p, std::size_t i, bool waker) const {
  return {StackWord::kernel, waker, p.kernel[i],
          i < p.kernel_places.size() ? &p.kernel_places[i] : nullptr};
}

std::vector<StackWord> StackLayout::path(const std::vector<StackParty>& parties) const {
  auto& task = parties.front();
  std::vector<StackWord> path;
  if (report_.layout == StackReport::waker) {
    if (parties.size() > 1) {
      path.push_back({StackWord::task, true, parties[1].name()});
      down(path, parties[1], true);
    }
    path.push_back({StackWord::task, false, task.name()});
    if (task.who.waiting) path.push_back({StackWord::mark, false, kStillWaiting});
    return path;
  }
  path.push_back({StackWord::task, false, task.name()});
  down(path, task, false);
  if (task.reason)
    path.push_back(
        {color_of(wait_reasons()[*task.reason].of), false, fmt::format("[{}]", reason_of(task))});
  if (task.who.state == STACK_RUNNABLE) path.push_back({StackWord::mark, false, kRunnable});
  if (task.who.waiting) path.push_back({StackWord::mark, false, kStillWaiting});
  // From here on leaf first: a waker is drawn above the task that it woke.
  for (std::size_t i = 1; i < parties.size(); i++) {
    auto& p = parties[i];
    path.push_back({StackWord::mark, true, kApart});
    for (std::size_t f = 0; f < p.kernel.size(); f++) path.push_back(kernel_word(p, f, true));
    for (std::size_t f = 0; f < p.user.size(); f++) path.push_back(user_word(p, f, true));
    if (!p.cut.empty()) path.push_back({StackWord::mark, true, cut_mark(p.cut)});
    path.push_back({StackWord::task, true, p.name()});
  }
  return path;
}

std::string StackLayout::folded(const std::vector<StackWord>& path) const {
  std::string line;
  const char* between = "";  // a task may have an empty name
  for (auto& w : path) {
    line += std::exchange(between, ";");
    line += folded_word(word(w));
  }
  return line;
}

std::vector<std::string> StackLayout::lines(const std::vector<StackParty>& parties) const {
  std::vector<std::string> out;
  auto put = [&](const StackWord& frame) {
    const bool inlined = style_.lines && !style_.annotated && frame.place && frame.place->inlined;
    out.push_back("    " + printable(word(frame)) + (inlined ? " (inlined)" : ""));
  };
  auto up = [&](const StackParty& p) {  // leaf first
    for (std::size_t i = 0; i < p.kernel.size(); i++) put(kernel_word(p, i, false));
    if (style_.delimited && !p.kernel.empty() && !p.user.empty()) out.emplace_back("    --");
    for (std::size_t i = 0; i < p.user.size(); i++) put(user_word(p, i, false));
    if (auto marks = stack_marks(p.cut, p.guessed); !marks.empty()) out.push_back("    " + marks);
  };
  auto& task = parties.front();
  auto mark = [&](bool holds, const char* text) {
    if (holds) out.push_back(fmt::format("    {}", text));
  };
  if (report_.layout == StackReport::waker) {
    mark(task.who.waiting, kStillWaiting);
    out.push_back(title("target:", task, false));
    if (parties.size() < 2) return out;
    up(parties[1]);
    out.push_back(title("waker:", parties[1], false));
    return out;
  }
  for (std::size_t i = parties.size() - 1; i > 0; i--) {
    auto& p = parties[i];
    out.push_back(title(parties.size() > 2 ? fmt::format("waker{}:", i) : "waker:", p, true));
    if (auto marks = stack_marks(p.cut, p.guessed); !marks.empty()) out.push_back("    " + marks);
    for (auto f = p.user.size(); f-- > 0;) put(user_word(p, f, true));
    for (auto f = p.kernel.size(); f-- > 0;) put(kernel_word(p, f, true));
    out.push_back(fmt::format("    {:<16} {}", kApart, kApart));
  }
  mark(task.who.waiting, kStillWaiting);
  mark(task.who.state == STACK_RUNNABLE, kRunnable);
  if (task.reason) out.push_back(fmt::format("    [{}]", reason_of(task)));
  up(task);
  if (report_.layout == StackReport::chain)
    out.push_back(title("target:", task, true));
  else if (task.who.tid || task.who.comm[0])  // otherwise the sum is of all processes
    out.push_back(fmt::format("    {:<16} {} ({})", "-", printable(task.name()), task.who.tid));
  return out;
}

std::string StackLayout::json(const std::vector<StackParty>& parties, const stack_sum& sum,
                              std::string_view event) const {
  auto& task = parties.front();
  JsonLine line("stack", style_.tool);
  line.text("comm", task.name());
  json_ids(line, task.who);
  if (!event.empty()) line.text("event", event);
  if (report_.measure == StackReport::time)
    line.boolean("runnable", task.who.state == STACK_RUNNABLE);
  if (!report_.waits_by.empty()) line.boolean("still_waiting", task.who.waiting);
  if (!report_.reasons_when.empty())
    line.text_if(task.reason.has_value(), "reason", reason_of(task));
  json_frames(line, task, style_.lines);
  if (report_.layout != StackReport::alone) {
    line.key("wakers").begin_array();
    for (std::size_t i = 1; i < parties.size(); i++) {
      line.begin_object()
          .text("context", context_of(parties[i].who.state))
          .text("comm", parties[i].name());
      json_ids(line, parties[i].who);
      json_frames(line, parties[i], style_.lines);
      line.end_object();
    }
    line.end_array();
  }
  if (report_.measure == StackReport::time) line.number("total_ns", sum.total_ns);
  if (report_.measure == StackReport::bytes) line.number("bytes", sum.total_ns);
  line.number("count", sum.count);
  return std::string(line.finish());
}

std::string StackLayout::csv_keys() const {
  if (report_.measure == StackReport::bytes) return "comm,pid,tid,bytes,count,stack";
  if (report_.measure != StackReport::time)
    return report_.event.empty() ? "comm,pid,tid,count,stack" : "comm,pid,tid,event,count,stack";
  std::string keys = report_.waits_by.empty()
                         ? "comm,pid,tid,runnable,total_ns,count,stack"
                         : "comm,pid,tid,runnable,still_waiting,total_ns,count,stack";
  return report_.reasons_when.empty() ? keys : keys + ",reason";
}

std::string StackLayout::csv(const std::vector<StackParty>& parties, const stack_sum& sum,
                             std::string_view event) const {
  auto& task = parties.front();
  auto row = fmt::format("{},{},{},", csv_field(task.name()), task.who.tgid, task.who.tid);
  if (!event.empty()) row += fmt::format("{},", event);
  if (report_.measure == StackReport::time) {
    row += fmt::format("{},", task.who.state == STACK_RUNNABLE);
    if (!report_.waits_by.empty()) row += fmt::format("{},", task.who.waiting != 0);
    row += fmt::format("{},", sum.total_ns);
  }
  if (report_.measure == StackReport::bytes) row += fmt::format("{},", sum.total_ns);
  row += fmt::format("{},{}", sum.count, csv_field(folded(parties)));
  return report_.reasons_when.empty() ? row : fmt::format("{},{}", row, reason_of(task));
}

}  // namespace coretap
