#include "docs/man.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/format.h>

#include "core/load.hpp"
#include "core/naming.hpp"
#include "core/rights.hpp"
#include "core/session.hpp"
#include "core/walker.hpp"
#include "docs/help.hpp"
#include "docs/keys.hpp"
#include "docs/man_parts.hpp"

namespace coretap {

namespace {

/// Does the tool declare it, rather than the library for all tools?
bool declares(const Tool& tool, std::string_view option) {
  return std::any_of(tool.options.begin(), tool.options.end(),
                     [&](auto& o) { return o.name == option; });
}

void synopsis_section(Page& p, const Tool& tool) {
  p.section("SYNOPSIS");
  p.macro(fmt::format("Nm {}", command_of(tool.name)));
  std::string letters;
  for (auto& o : tool.options)
    if (o.letter && o.metavar.empty()) letters += o.letter;
  if (!letters.empty()) p.macro(fmt::format("Op Fl {}", inline_words(letters)));
  for (auto& o : tool.options)
    if (!o.metavar.empty())
      p.macro(o.letter ? fmt::format("Op Fl {} Ar {}", o.letter, inline_words(o.metavar))
                       : fmt::format("Op Fl -{} Ar {}", o.name, inline_words(o.metavar)));
  for (auto& o : tool.options)
    if (!o.letter && o.metavar.empty()) p.macro(fmt::format("Op Fl -{}", o.name));
  p.macro("Op Ar COMMON OPTIONS");
  if (tool.positionals == Positionals::interval_count) p.macro("Op Ar INTERVAL Op Ar COUNT");
  if (tool.positionals == Positionals::duration) p.macro("Op Ar DURATION");
  if (tool.positionals == Positionals::cgroups) p.macro("Op Ar CGROUP ...");
  p.macro("Op Fl - Ar COMMAND Op Ar ARGS ...");
}

void options_section(Page& p, const Tool& tool) {
  p.section("OPTIONS");
  p.begin("-tag -width Ds");
  for (auto& a : arguments(tool)) {
    p.item(a.words.starts_with("--") ? "Fl - Ar COMMAND Op Ar ARGS ..."
                                     : fmt::format("Ar {}", a.words));
    p.prose(sentence(a.doc));
  }
  p.end();
  for (auto& group : option_groups(tool)) {
    std::erase_if(group.options, [&](auto& o) { return !declares(tool, o.name); });
    if (group.options.empty()) continue;
    p.macro(fmt::format("Ss {}", inline_words(group.title)));
    p.begin("-tag -width Ds");
    for (auto& o : group.options) {
      p.item(option_item(o));
      p.prose(sentence(o.doc));
      for (auto& [one, other] : tool.exclusive)
        if (o.name == one || o.name == other)
          p.prose(fmt::format("Not together with --{}.", o.name == one ? other : one));
    }
    p.end();
  }
  p.macro("Ss Common options");
  p.prose("These are described in coretap-output(7):");
  std::vector<Option> common;
  for (auto& o : all_options(tool))
    if (!declares(tool, o.name)) common.push_back(o);
  for (auto& o : common)
    p.macro(fmt::format("{} {}", option_item(o), &o == &common.back() ? "." : ","));
}

std::string need_words(const Need& need) {
  switch (need.kind) {
    case Need::field:
      return fmt::format("struct {} has {}", need.type, need.member);
    case Need::function:
      return fmt::format("there is a function {}", need.type);
    case Need::arguments:
      return fmt::format("tracepoint {} has {} arguments", need.type, need.count);
    case Need::enum_value:
      return fmt::format("enum {} has {}", need.type, need.member);
  }
  return {};
}

void attach_section(Page& p, const Tool& tool) {
  auto parts = kernel_parts(tool);
  p.section("ATTACH POINTS");
  p.prose(
      "Each of these hooks uses the first candidate that the running kernel offers; --explain "
      "prints which, and why not the others. The kinds of attach points are explained in "
      "coretap-output(7).");
  p.begin("-tag -width Ds");
  for (auto& hook : tool.hooks) {
    p.item("Sy " + inline_words(hook.name));
    if (auto words = condition_words(hook.when); !words.empty())
      p.prose(fmt::format("Only {}.", words));
    p.begin("-enum -compact");
    for (auto& way : hook.ways) {
      p.item("");
      for (auto program : way.programs) {
        bool last = program == way.programs.back();
        p.macro(fmt::format("Ql {}{}", parts.section(program),
                            !last                                     ? " ,"
                            : way.needs.empty() && way.limits.empty() ? ""
                                                                      : " :"));
      }
      std::string needs;
      for (auto& need : way.needs) needs += (needs.empty() ? "where " : " and ") + need_words(need);
      if (way.programs.empty()) needs = "Nothing of its own, " + needs;
      if (!needs.empty()) p.prose(needs + '.');
      p.prose(sentence(way.limits));
    }
    p.end();
    if (!hook.optional.empty()) p.prose(fmt::format("If there is none: {}.", hook.optional));
  }
  for (auto& program : library_programs()) {
    auto section = parts.section(program.name);
    if (section.empty()) continue;
    p.item("Sy " + inline_words(program.purpose));
    p.prose(fmt::format("Only {}.", program.when));
    p.begin("-enum -compact");
    p.item("");
    p.macro(fmt::format("Ql {}", section));
    p.end();
  }
  p.end();
}

void field_items(Page& p, const std::vector<Field>& fields) {
  p.begin("-tag -width Ds");
  for (auto& f : fields) {
    p.item("Sy " + inline_words(f.title.empty() ? f.key : f.title));
    p.prose(sentence(f.doc));
    // Such a field is left out of the table alone: the reporters write all into JSON and CSV.
    if (auto words = condition_words(f.exists); !words.empty())
      p.prose(fmt::format("There only {}.", words));
    if (!f.in_ms.empty()) p.prose(fmt::format("With --milliseconds it is {}.", f.in_ms));
    if (f.when == "json")
      p.prose("Only in JSON and CSV.");
    else if (auto words = condition_words(f.when); !words.empty())
      p.prose(fmt::format("Only {}.", words));
    if (!f.text_only) p.macro(fmt::format("Pq Va {}", f.key));
  }
  p.end();
}

bool has(const Tool& tool, std::string_view option) {
  auto all = all_options(tool);
  return std::any_of(all.begin(), all.end(), [&](auto& o) { return o.name == option; });
}

void output(Page& p, const Tool& tool, const HistogramReport& r) {
  p.prose(
      fmt::format("Each report is a histogram of {}: a line for each range of powers of two, with "
                  "the number of values in it and a bar.",
                  r.what));
  p.prose(has(tool, "milliseconds")
              ? "Ranges are in microseconds, or milliseconds with --milliseconds."
          : r.unit_ns == 1'000 ? "Ranges are in microseconds."
                               : "Ranges are in milliseconds.");
  if (!r.extension.empty())
    p.prose(fmt::format("With --{} a line with average, total and count follows.", r.extension));
  if (!r.totals.empty()) {
    p.prose(fmt::format(
        "Above it stands \"{}\", since tracing began; in JSON these are keys of the report:",
        r.totals_title));
    field_items(p, r.totals);
  }
  if (r.keys.empty()) return;
  p.macro("Pp");
  p.prose(
      "There is one histogram for each set of those of these that are asked for; in parentheses "
      "their keys in JSON and CSV.");
  field_items(p, r.keys);
}

const char* time_words(const TimeColumn& t) {
  return t.kind == TimeColumn::wall ? "the time of day" : "the seconds since tracing began";
}

void output(Page& p, const Tool& tool, const EventReport& r) {
  p.prose("One line an event; in parentheses the columns' keys in JSON and CSV.");
  for (auto& t : r.times) {
    if (t.when.empty() || t.when.front() == '!')
      p.prose(fmt::format("{} is {}.", t.title, time_words(t)));
    else if (has(tool, t.when))
      p.prose(fmt::format("With --{} each line begins with {}.", t.when, time_words(t)));
  }
  if (!r.stack_when.empty())
    p.prose(fmt::format("With --{} the kernel stack follows, the innermost function first.",
                        r.stack_when));
  if (!r.callers_when.empty())
    p.prose(fmt::format("With --{} the user stack follows, the innermost function first.",
                        r.callers_when));
  field_items(p, r.fields);
}

const char* entry_words(const StackReport& r) {
  switch (r.layout) {
    case StackReport::waker:
      return "Each has a line with the name of the task, the frames in which it was woken, the "
             "innermost first; a line with the name of the waker; and the sum.";
    case StackReport::chain:
      return "Each has, for each waker from the most distant one to the nearest, a line with its "
             "name and thread id and its frames, the outermost first; then the frames in which "
             "the task blocked, the innermost first; a line with its name and thread id; and the "
             "sum. In place of a name stands [irq], [softirq] or [idle] where no task woke.";
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

void held_output(Page& p, const Tool& tool) {
  p.prose(
      "Each report begins with the time of day and how many stacks follow, the largest last. Each "
      "stack has a line with the sums of bytes and of allocations, and its frames, the innermost "
      "first. Where several processes may be meant that line ends with the name and id of the "
      "process, and with \"has ended\" if this is what it held until then, which is shown once.");
  if (has(tool, "show-allocs"))
    p.prose("With --show-allocs each allocation's address and size come before the frames.");
  if (has(tool, "folded"))
    p.prose(
        "With --folded each stack is a line: name and frames, outermost first, joined by "
        "semicolons, and the sum.");
}

void output(Page& p, const Tool& tool, const StackReport& r) {
  if (r.measure == StackReport::held) return held_output(p, tool);
  p.prose("Entries come in the order of their sums, the largest last.");
  p.prose(entry_words(r));
  p.prose(fmt::format("The sum is in {}.", r.value_title));
  if (has(tool, "folded")) p.prose(folded_words(r));
  if (has(tool, "svg"))
    p.prose(
        "The flame graph of --svg is that path drawn upwards, each frame as wide as its share; warm "
        "colours are user code, cold ones the kernel's. It is one file for any browser: a click "
        "zooms, Ctrl-F searches by a regular expression or plain text and tells the share of what "
        "is found. Its head tells the options, the time traced and what was lost. The file appears "
        "when tracing ends; an older one of its name stays until then.");
}

void output(Page& p, const Tool& tool, const SumReport& r) {
  p.prose(
      "One line a report, about what happened since the one before; in parentheses the columns' "
      "keys in JSON and CSV.");
  if (r.time_when.empty())
    p.prose("Each line begins with the time.");
  else if (has(tool, r.time_when))
    p.prose(fmt::format("With --{} each line begins with the time.", r.time_when));
  field_items(p, r.fields);
}

std::vector<std::string_view> parts(std::string_view list) {
  std::vector<std::string_view> all;
  while (!list.empty()) {
    all.push_back(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), all.back().size() + 1));
  }
  return all;
}

void output(Page& p, const Tool& tool, const TableReport& r) {
  p.prose(fmt::format(
      "Each report has the time of day in brackets and a row for each key about which there is "
      "something to tell since the report before, by {}, the largest first; in parentheses the "
      "columns' keys in JSON and CSV.",
      fmt::join(parts(r.sort), ", then ")));
  if (has(tool, "top") && r.top)
    p.prose(fmt::format("Text has the first {} rows unless --top says otherwise.", r.top));
  field_items(p, r.fields);
}

void output(Page& p, const Tool&, const CallReport&) {
  p.prose(
      "A line a call, in the order in which they began: minutes, seconds and nanoseconds since "
      "tracing began, CPU, process (and thread, where it is another one), command name, the call "
      "with its arguments by name, its result or error, and in angle brackets its time in seconds. "
      "A call that has not ended has ... in place of its result; one whose begin was not seen has "
      "... before its name.");
  p.prose(
      "What a recorder holds when it is asked for comes behind a line ==> ... <== that tells of "
      "which cgroup, why, how many calls, and how many older ones were overwritten.");
}

void output(Page& p, const Tool& tool, const SnapshotReport& r) {
  p.prose(fmt::format(
      "What {} says at that moment, in the form of {}: at once, and again each interval. Nothing "
      "is attached or loaded, and no rights are needed.",
      r.source, r.likeness));
  if (has(tool, "timestamp")) p.prose("With --timestamp each report has the time before it.");
}

void csv_names(Page& p, const std::vector<Key>& columns) {
  for (auto& c : columns) {
    p.macro(fmt::format("Va {}{}", c.name,
                        !c.when.empty()         ? ""
                        : &c == &columns.back() ? " ."
                                                : " ,"));
    if (!c.when.empty())
      p.prose(fmt::format("({}){}", condition_words(c.when), &c == &columns.back() ? "." : ","));
  }
}

void json_section(Page& p, const Tool& tool) {
  p.section("JSON");
  p.prose(
      "With --json each line is an object. The header, which comes first, the ledger, which comes "
      "last, and what all objects have in common are described in coretap-output(7). Between the "
      "two, with their keys in this order:");
  auto kinds = json_kinds(tool);
  for (std::size_t i = 1; i + 1 < kinds.size(); i++) {
    auto& kind = kinds[i];
    p.macro(fmt::format("Ss {}", sentence(kind.type).substr(0, kind.type.size())));
    p.prose(sentence(kind.written));
    key_items(p, kind.keys);
  }
  p.macro("Ss CSV");
  p.prose("With --csv a first line names the columns:");
  csv_names(p, csv_columns(tool.report));
  for (auto& other : tool.other_reports) {
    p.prose(fmt::format("With --{} they are:", other.when));
    csv_names(p, csv_columns(other.report));
  }
}

/// What capabilities(7) the tool asks for, and why.
void rights_section(Page& p, const Tool& tool) {
  auto needs = needed_rights(tool);
  p.section("RIGHTS");
  if (needs.empty()) {
    p.prose("None: any user may run it.");
    return;
  }
  p.prose("Root, or these capabilities(7):");
  p.begin("-tag -width Ds -compact");
  for (auto& need : needs) {
    p.item(name_of(need.right));
    p.prose(sentence(fmt::format("{}{}", need.always ? "" : "optional: ", need.purpose)));
  }
  p.end();
}

}  // namespace

void key_items(Page& p, const std::vector<Key>& keys) {
  p.begin("-tag -width Ds -compact");
  for (auto& k : keys) {
    p.item(
        fmt::format("Va {} Pq {}", k.name,
                    inline_words(k.unit.empty() ? k.type : fmt::format("{}, {}", k.type, k.unit))));
    p.prose(sentence(k.doc));
    if (!k.when.empty()) p.prose(fmt::format("Only {}.", condition_words(k.when)));
    if (!k.members.empty()) key_items(p, k.members);
  }
  p.end();
}

void question_items(Page& p, const Tool& tool) {
  for (auto& q : tool.questions) {
    p.item(inline_words(q.question));
    p.example(as_typed(tool.name, q.command));
  }
}

std::string man_page(const Tool& tool) {
  Page p(page_of(tool.name), 8, tool.summary);
  synopsis_section(p, tool);
  p.section("DESCRIPTION");
  p.prose(tool.description);
  p.macro("Pp");
  p.prose(
      "Data goes to standard output; notes, errors and the ledger, which counts the events that "
      "are not in the data, go to standard error.");
  options_section(p, tool);
  attach_section(p, tool);
  p.section("OUTPUT");
  std::visit([&](auto& report) { output(p, tool, report); }, tool.report);
  for (auto& other : tool.other_reports) {
    p.macro("Pp");
    p.prose(fmt::format("With --{} there is another report instead.", other.when));
    std::visit([&](auto& report) { output(p, tool, report); }, other.report);
  }
  if (has(tool, "unwind")) {
    p.macro("Pp");
    p.prose(
        "User stacks, and the marks of those that are cut, are described in coretap-output(7).");
  }
  json_section(p, tool);
  rights_section(p, tool);
  p.section("EXIT STATUS");
  p.prose("As described in coretap-output(7).");
  p.section("OVERHEAD");
  p.prose(sentence(tool.overhead));
  p.section("ANSWERS");
  p.begin("-tag -width Ds -compact");
  question_items(p, tool);
  p.end();
  p.section("EXAMPLES");
  for (auto& e : tool.examples) {
    if (&e != &tool.examples.front()) p.macro("Pp");
    auto words = sentence(e.meaning);
    words.back() = ':';
    p.prose(words);
    p.macro("Pp");
    p.example(as_typed(tool.name, e.command));
  }
  p.section("SEE ALSO");
  p.macro("Xr coretap-output 7 ,");
  p.macro("Xr coretap 8");
  return p.finish();
}

}  // namespace coretap
