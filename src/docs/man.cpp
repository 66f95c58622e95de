#include "docs/man.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/parse.hpp"
#include "docs/man_parts.hpp"
#include "program/load.hpp"
#include "program/needed_capabilities.hpp"
#include "program/plan.hpp"
#include "text/json_kinds.hpp"

namespace coretap {

namespace {

bool contains(const std::vector<Option>& options, std::string_view name) {
  return std::ranges::any_of(options, [&](auto& o) { return o.name == name; });
}

/// True if the tool declares the option itself, rather than the library for all tools.
bool declares(const Tool& tool, std::string_view option) { return contains(tool.options, option); }

bool has(const Tool& tool, std::string_view option) { return contains(all_options(tool), option); }

void condition(Page& p, std::string_view when, std::string_view before = "Only") {
  if (!when.empty()) p.prose(fmt::format("{} {}.", before, condition_words(when)));
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
  std::string optional;  // Op takes the rest of the line: [INTERVAL [COUNT]]
  for (auto& word : tool.positionals) {
    auto macro = fmt::format("Ar {}{}", inline_words(word.metavar), word.repeats() ? " ..." : "");
    if (word.needed())
      p.macro(macro);
    else
      optional += fmt::format("{}Op {}", optional.empty() ? "" : " ", macro);
  }
  if (!optional.empty()) p.macro(optional);
  p.macro("Op Fl - Ar COMMAND Op Ar ARGS ...");
}

void options_section(Page& p, const Tool& tool) {
  p.section("OPTIONS");
  p.begin("-tag -width Ds");
  for (auto& a : arguments(tool)) {
    const bool command = a.words.starts_with("--");
    p.item(command ? "Fl - Ar COMMAND Op Ar ARGS ..." : fmt::format("Ar {}", a.words), a.doc);
  }
  p.end();
  for (auto& group : option_groups(tool)) {
    std::erase_if(group.options, [&](auto& o) { return !declares(tool, o.name); });
    if (group.options.empty()) continue;
    p.macro(fmt::format("Ss {}", inline_words(group.title)));
    p.begin("-tag -width Ds");
    for (auto& o : group.options) {
      p.item(option_item(o), o.doc);
      condition(p, o.belongs_to);
      for (auto& [one, other] : tool.exclusive)
        if (o.name == one || o.name == other)
          p.prose(fmt::format("Not together with --{}.", o.name == one ? other : one));
    }
    p.end();
  }
  p.macro("Ss Common options");
  p.prose("These are described in coretap-output(7):");
  auto common = all_options(tool);
  std::erase_if(common, [&](auto& o) { return declares(tool, o.name); });
  for (auto& o : common)
    p.macro(fmt::format("{} {}", option_item(o), &o == &common.back() ? "." : ","));
  std::map<std::string, std::string> conditional;
  for (auto& o : common)
    if (auto words = condition_words(o.belongs_to); !words.empty()) {
      auto& names = conditional[words];
      names += fmt::format("{}--{}", names.empty() ? "" : ", ", o.name);
    }
  for (auto& [words, names] : conditional) p.prose(fmt::format("Only {}: {}.", words, names));
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

/// A section of a program; permits a line break after each comma in a list of tracepoints.
std::string section_words(std::string_view section) {
  std::string out = "Ql ";
  for (char c : section) {
    out += c;
    if (c == ',') out += "\\:";
  }
  return out;
}

void attach_section(Page& p, const Tool& tool) {
  p.section("ATTACH POINTS");
  if (tool.hooks.empty()) return p.prose("None: the kernel counts without a program.");
  auto parts = kernel_parts(tool);
  p.prose(
      "Each hook uses the first candidate that the running kernel supports; --explain prints "
      "which one, and why the others were rejected. The kinds of attach points are explained in "
      "coretap-output(7).");
  p.begin("-tag -width Ds");
  for (auto& hook : tool.hooks) {
    p.item("Sy " + inline_words(hook.name));
    condition(p, hook.when);
    p.begin("-enum -compact");
    for (auto& candidate : hook.candidates) {
      p.item("");
      for (auto program : candidate.programs) {
        bool last = program == candidate.programs.back();
        p.macro(section_words(parts.section(program)) +
                (!last                                                 ? " ,"
                 : candidate.needs.empty() && candidate.caveat.empty() ? ""
                                                                       : " :"));
      }
      std::string needs;
      for (auto& need : candidate.needs)
        needs += (needs.empty() ? "where " : " and ") + need_words(need);
      if (candidate.programs.empty()) needs = "No program, " + needs;
      if (!needs.empty()) p.prose(needs + '.');
      p.prose(sentence(candidate.caveat));
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
    p.macro(section_words(section));
    p.end();
  }
  p.end();
}

void field_items(Page& p, const std::vector<Field>& fields) {
  p.begin("-tag -width Ds");
  for (auto& f : fields) {
    const bool percent = f.format.kind == Format::percent;
    constexpr std::string_view kFraction = ", 0 to 1";
    p.item("Sy " + inline_words(f.title.empty() ? f.key : f.title),
           percent && f.doc.ends_with(kFraction) ? f.doc.substr(0, f.doc.size() - kFraction.size())
                                                 : f.doc);
    if (percent) p.prose("In percent; in JSON and CSV from 0 to 1.");
    // Such a field is omitted from the table only: JSON and CSV have all fields.
    condition(p, f.only_with, "Present only");
    if (!f.millisecond_title.empty())
      p.prose(fmt::format("With --milliseconds it is {}.", f.millisecond_title));
    if (!f.nanosecond_title.empty())
      p.prose(fmt::format("With --nanoseconds it is {}.", f.nanosecond_title));
    if (f.shown_with == "json")
      p.prose("Only in JSON and CSV.");
    else
      condition(p, f.shown_with);
    if (!f.table_only) p.macro(fmt::format("Pq Va {}", f.key));
  }
  p.end();
}

/// Lets each kind of report write its part of the page.
class PageManual : public Manual {
 public:
  PageManual(Page& page, const Tool& tool) : page_(page), tool_(tool) {}
  void prose(std::string_view text) override { page_.prose(text); }
  void paragraph() override { page_.macro("Pp"); }
  void fields(const std::vector<Field>& fields) override { field_items(page_, fields); }
  bool has_option(std::string_view name) const override { return has(tool_, name); }

 private:
  Page& page_;
  const Tool& tool_;
};

void csv_names(Page& p, const std::vector<OutputKey>& columns) {
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
      "With --json each line is an object. The header, which comes first, the ledger, which "
      "comes last, and the keys that all objects have are described in coretap-output(7). These "
      "objects come between them, with their keys in this order:");
  auto kinds = json_kinds(tool);
  for (std::size_t i = 1; i + 1 < kinds.size(); i++) {
    auto& kind = kinds[i];
    p.macro(fmt::format("Ss {}", sentence(kind.type).substr(0, kind.type.size())));
    p.prose(sentence(kind.written));
    key_items(p, kind.keys);
  }
  p.macro("Ss CSV");
  p.prose("With --csv the first line names the columns:");
  csv_names(p, tool.report->csv());
  for (auto& other : tool.other_reports) {
    p.prose(fmt::format("With --{} they are:", other.when));
    csv_names(p, other.report->csv());
  }
}

/// The capabilities(7) that the tool requires, and why.
void rights_section(Page& p, const Tool& tool) {
  auto needs = needed_capabilities(tool);
  p.section("RIGHTS");
  if (needs.empty()) {
    p.prose("None: any user may run it.");
    return;
  }
  p.prose("Root, or these capabilities(7):");
  p.begin("-tag -width Ds -compact");
  for (auto& need : needs) {
    p.item(name_of(need.capability),
           fmt::format("{}{}", need.always ? "" : "optional: ", need.purpose));
  }
  p.end();
}

void effects_section(Page& p) {
  p.section("EFFECTS ON TRACED PROGRAMS");
  p.prose(
      "A program takes longer where it is probed, and does nothing else differently. The kernel's "
      "return probe would replace the return address on the stack, so that C++ exceptions end in "
      "terminate(), Rust panics abort, cancelled threads run no destructors, coroutines crash and "
      "Go programs stop. Functions are probed at their return instructions instead.");
  p.prose(
      "The kernel's return probe is used if nothing can unwind or switch stacks in the function: in "
      "functions that call nothing, and those that allocate memory or take mutexes. A function whose return instructions cannot "
      "be found otherwise is left out, with a message. --return-trampoline uses the kernel's return "
      "probe there too, but not in Go programs.");
  p.prose(
      "A place is refused where a probe would overwrite data of the program: on a 5-byte nop within "
      "a function, on kernels whose probe there writes below the stack pointer.");
}

/// Output of a real run, and the meaning of its columns from their declaration.
void sample_section(Page& p, const Tool& tool, std::string_view sample) {
  auto text = sample, command = take_until(text, '\n');
  p.section("EXAMPLE OUTPUT");
  p.prose("The first lines that this command printed, while a test's workload ran:");
  p.macro("Pp");
  p.example(command);
  p.literal(text);
  auto columns = columns_of(tool, command);
  std::erase_if(columns, [&](auto& f) { return text.find(f.title) == text.npos; });
  if (columns.empty()) return;
  p.begin("-tag -width Ds -compact");
  for (auto& f : columns) p.item("Sy " + inline_words(f.title), f.doc);
  p.end();
}

}  // namespace

std::vector<Field> columns_of(const Tool& tool, std::string_view command_line) {
  std::vector<std::string> words;
  while (!command_line.empty()) words.emplace_back(take_until(command_line, ' '));
  if (words.size() < 2) return {};
  auto parsed = parse_command_line(tool, {words.begin() + 2, words.end()});
  if (!parsed) return {};
  auto fields = chosen_report(tool, parsed->config)->fields();
  std::erase_if(fields, [&](auto& f) {
    return f.title.empty() || !parsed->config.holds(f.only_with) ||
           !parsed->config.holds(f.shown_with);
  });
  return fields;
}

void key_items(Page& p, const std::vector<OutputKey>& keys) {
  p.begin("-tag -width Ds -compact");
  for (auto& k : keys) {
    auto type = k.unit.empty() ? k.type : fmt::format("{}, {}", k.type, k.unit);
    p.item(fmt::format("Va {} Pq {}", k.name, inline_words(type)), k.doc);
    condition(p, k.when);
    if (!k.members.empty()) key_items(p, k.members);
  }
  p.end();
}

void example_section(Page& p, std::string_view name, const std::vector<Example>& examples) {
  p.section("EXAMPLES");
  for (auto& e : examples) {
    if (&e != &examples.front()) p.macro("Pp");
    p.example(e.meaning, as_typed(name, e.command));
  }
}

void question_items(Page& p, const Tool& tool) {
  for (auto& q : tool.questions) {
    p.item(inline_words(q.question));
    p.example(as_typed(tool.name, q.command));
  }
}

std::string man_page(const Tool& tool, std::string_view sample) {
  Page p(page_of(tool.name), 8, tool.summary);
  synopsis_section(p, tool);
  p.section("DESCRIPTION");
  p.prose(tool.description);
  p.macro("Pp");
  if (!tool.other_names.empty()) {
    p.prose(fmt::format("Other names: {}.", other_names_of(tool)));
    p.macro("Pp");
  }
  p.prose(
      "Data goes to standard output; notes, errors and the ledger, which counts the events that "
      "are not in the data, go to standard error.");
  options_section(p, tool);
  attach_section(p, tool);
  p.section("OUTPUT");
  PageManual manual(p, tool);
  tool.report->manual(manual);
  for (auto& other : tool.other_reports) {
    p.macro("Pp");
    p.prose(fmt::format("With --{} there is a different report instead.", other.when));
    other.report->manual(manual);
  }
  if (has(tool, "unwind")) {
    p.macro("Pp");
    p.prose("User stacks, and the marks of truncated ones, are described in coretap-output(7).");
  }
  json_section(p, tool);
  rights_section(p, tool);
  p.section("EXIT STATUS");
  p.prose("As described in coretap-output(7).");
  p.section("OVERHEAD");
  p.prose(sentence(tool.overhead));
  if (has(tool, "return-trampoline")) effects_section(p);
  p.section("ANSWERS");
  p.begin("-tag -width Ds -compact");
  question_items(p, tool);
  p.end();
  example_section(p, tool.name, tool.examples);
  if (!sample.empty()) sample_section(p, tool, sample);
  if (!has_differences(tool)) return p.finish({"coretap-guide 7", "coretap-output 7", "coretap 8"});
  p.section("DIFFERENCES");
  p.prose("For users of the tools with this name in bcc and libbpf-tools; see coretap-migrate(7).");
  differences(p, tool);
  return p.finish({"coretap-guide 7", "coretap-migrate 7", "coretap-output 7", "coretap 8"});
}

}  // namespace coretap
