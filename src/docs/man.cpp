#include "docs/man.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "docs/keys.hpp"
#include "program/load.hpp"
#include "program/needed_capabilities.hpp"
#include "program/session.hpp"
#include "unwind/walker.hpp"

namespace coretap {

namespace {

// When the form of the pages last changed; the day of a build would make each build differ.
constexpr char kDate[] = "November 21, 2026";
constexpr std::size_t kFill = 78;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// A word on a line that begins with a macro: one that looks like a macro must not be one.
std::string argument(std::string_view word) {
  bool macro = word.size() >= 2 && word.size() <= 3 && upper(word[0]) && lower(word[1]);
  return (macro ? "\\&" : "") + escape(word);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    auto word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string inline_words(std::string_view text) {
  std::string out;
  for (auto word : split(text)) out += (out.empty() ? "" : " ") + argument(word);
  return out;
}

/// A fragment of the tables as a sentence; names and numbers keep their first letter.
std::string sentence(std::string_view fragment) {
  std::string text(fragment);
  if (text.empty()) return text;
  auto first = fragment.substr(0, fragment.find_first_of(" ,:;"));
  if (std::all_of(first.begin(), first.end(),
                  [](char c) { return lower(c) || c == '-' || c == '\''; }) &&
      lower(first.empty() ? ' ' : first[0]))
    text[0] = static_cast<char>(toupper(text[0]));
  if (!text.ends_with('.')) text += '.';
  return text;
}

/// Collects lines of mdoc.
class Page {
 public:
  void macro(std::string_view line) { out_ += fmt::format(".{}\n", line); }
  void section(std::string_view title) { macro(fmt::format("Sh {}", title)); }

  /// Prose: options, paths and `-- COMMAND` get their macros, each sentence its own line.
  void prose(std::string_view text) {
    while (true) {
      auto end = text.find("\n\n");
      paragraph(text.substr(0, end));
      if (end == std::string_view::npos) return;
      macro("Pp");
      text.remove_prefix(end + 2);
    }
  }

  void item(std::string_view line) { macro(fmt::format("It {}", line)); }
  void begin(std::string_view list) { macro(fmt::format("Bl {}", list)); }
  void end() { macro("El"); }
  void example(std::string_view command) { macro("Dl " + dashes(inline_words(command))); }

  std::string finish() { return std::move(out_); }

 private:
  // In what is to be typed a hyphen must stay one.
  static std::string dashes(std::string text) {
    for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2)
      text.insert(at, 1, '\\');
    return text;
  }

  /// The macro line for a special word with its punctuation, or empty.
  static std::string special(std::string_view word) {
    std::string open, close;
    while (!word.empty() && word.front() == '(') {
      open += "( ";
      word.remove_prefix(1);
    }
    while (!word.empty() && std::string_view(".,;:)").find(word.back()) != std::string_view::npos) {
      close.insert(0, fmt::format(" {}", word.back()));
      word.remove_suffix(1);
    }
    std::string_view macro;
    if (word == "--" || (word.size() > 2 && word.starts_with("--") && lower(word[2]))) {
      macro = "Fl";
      word.remove_prefix(1);
    } else if (word.size() > 1 && word[0] == '/' && isalpha(static_cast<unsigned char>(word[1]))) {
      macro = "Pa";
    } else if (word == "COMMAND") {
      macro = "Ar";
    } else {
      return {};
    }
    return fmt::format(".{} {}{}{}\n", macro, open, escape(word), close);
  }

  void paragraph(std::string_view text) {
    std::string line;
    auto flush = [&] {
      if (line.empty()) return;
      if (line[0] == '.' || line[0] == '\'') out_ += "\\&";
      out_ += line + '\n';
      line.clear();
    };
    for (auto word : split(text)) {
      if (auto lines = special(word); !lines.empty()) {
        flush();
        out_ += lines;
        continue;
      }
      auto safe = escape(word);
      if (!line.empty() && line.size() + 1 + safe.size() > kFill) flush();
      line += (line.empty() ? "" : " ") + safe;
      if (word.ends_with('.') || word.ends_with(".)")) flush();
    }
    flush();
  }

  std::string out_;
};

void heading(Page& p, std::string_view name, std::string_view summary) {
  std::string title(name);
  std::transform(title.begin(), title.end(), title.begin(), toupper);
  p.macro(fmt::format("Dd {}", kDate));
  p.macro(fmt::format("Dt {} 8", title));
  p.macro("Os coretap");
  p.section("NAME");
  p.macro(fmt::format("Nm {}", name));
  p.macro(fmt::format("Nd {}", inline_words(summary)));
}

void synopsis_section(Page& p, const Tool& tool, const Naming& naming) {
  auto options = all_options(tool);
  p.section("SYNOPSIS");
  p.macro(fmt::format("Nm {}", naming.command(tool.name)));
  std::string letters;
  for (auto& o : options)
    if (o.letter && o.metavar.empty()) letters += o.letter;
  if (!letters.empty()) p.macro(fmt::format("Op Fl {}", argument(letters)));
  for (auto& o : options)
    if (!o.metavar.empty())
      p.macro(o.letter ? fmt::format("Op Fl {} Ar {}", o.letter, argument(o.metavar))
                       : fmt::format("Op Fl -{} Ar {}", o.name, argument(o.metavar)));
  for (auto& o : options)
    if (!o.letter && o.metavar.empty()) p.macro(fmt::format("Op Fl -{}", o.name));
  std::string optional;  // Op takes the rest of the line: [INTERVAL [COUNT]]
  for (auto& word : tool.positionals) {
    auto macro = fmt::format("Ar {}{}", argument(word.metavar), word.repeats() ? " ..." : "");
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
    p.item(a.words.starts_with("--") ? "Fl - Ar COMMAND Op Ar ARGS ..."
                                     : fmt::format("Ar {}", a.words));
    p.prose(sentence(a.doc));
  }
  p.end();
  for (auto& group : option_groups(tool)) {
    p.macro(fmt::format("Ss {}", inline_words(group.title)));
    p.begin("-tag -width Ds");
    for (auto& o : group.options) {
      auto value = o.metavar.empty() ? "" : fmt::format(" Ar {}", argument(o.metavar));
      p.item(o.letter ? fmt::format("Fl {}{} , Fl -{}{}", o.letter, value, o.name, value)
                      : fmt::format("Fl -{}{}", o.name, value));
      p.prose(sentence(o.doc));
      for (auto& [one, other] : tool.exclusive)
        if (o.name == one || o.name == other)
          p.prose(fmt::format("Not together with --{}.", o.name == one ? other : one));
    }
    p.end();
  }
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

/// What the kinds of sections mean, for those that the tool uses.
std::string kinds(const KernelParts& parts) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"tp_btf/", "a tracepoint whose arguments have types"},
      {"raw_tp/", "a raw tracepoint"},
      {"tracepoint/", "a tracepoint as tracefs lists it"},
      {"tp/", "a tracepoint as tracefs lists it"},
      {"fentry/", "the begin of a kernel function"},
      {"fexit/", "the end of a kernel function"},
      {"kprobe/", "the begin of a kernel function, by a breakpoint"},
      {"kretprobe/", "the end of a kernel function, by a breakpoint"},
      {"uprobe/", "the begin of a user function"},
      {"uretprobe/", "the end of a user function"},
      {"perf_event", "a sample of a hardware or software counter"},
      {"iter/", "a walk over kernel objects"},
  };
  std::string text;
  for (auto& kind : kKinds) {
    auto prefix = kind.first, meaning = kind.second;
    if (std::any_of(parts.programs.begin(), parts.programs.end(),
                    [&](auto& program) { return program.section.starts_with(prefix); })) {
      if (prefix.ends_with('/')) prefix.remove_suffix(1);
      text += fmt::format("{}{} is {}", text.empty() ? "" : "; ", prefix, meaning);
    }
  }
  return text.empty() ? text : text + '.';
}

void attach_section(Page& p, const Tool& tool) {
  auto parts = kernel_parts(tool);
  p.section("ATTACH POINTS");
  p.prose(
      "Each of these hooks takes the first way that the running kernel offers; --explain tells "
      "which, and why not the others.");
  p.prose(kinds(parts));
  p.begin("-tag -width Ds");
  for (auto& hook : tool.hooks) {
    p.item("Sy " + inline_words(hook.name));
    if (auto words = condition_words(hook.when); !words.empty())
      p.prose(fmt::format("Only {}.", words));
    p.begin("-enum -compact");
    for (auto& way : hook.candidates) {
      p.item("");
      for (auto program : way.programs) {
        bool last = program == way.programs.back();
        p.macro(fmt::format("Ql {}{}", parts.section(program),
                            !last                                     ? " ,"
                            : way.needs.empty() && way.caveat.empty() ? ""
                                                                      : " :"));
      }
      std::string needs;
      for (auto& need : way.needs) needs += (needs.empty() ? "where " : " and ") + need_words(need);
      if (way.programs.empty()) needs = "Nothing of its own, " + needs;
      if (!needs.empty()) p.prose(needs + '.');
      p.prose(sentence(way.caveat));
    }
    p.end();
    if (!hook.optional.empty()) p.prose(fmt::format("Where none can be had: {}.", hook.optional));
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
    if (auto words = condition_words(f.only_with); !words.empty())
      p.prose(fmt::format("There only {}.", words));
    if (!f.millisecond_title.empty())
      p.prose(fmt::format("With --milliseconds it is {}.", f.millisecond_title));
    if (f.shown_with == "json")
      p.prose("Only in JSON and CSV.");
    else if (auto words = condition_words(f.shown_with); !words.empty())
      p.prose(fmt::format("Only {}.", words));
    if (!f.table_only) p.macro(fmt::format("Pq Va {}", f.key));
  }
  p.end();
}

bool has(const Tool& tool, std::string_view option) {
  auto all = all_options(tool);
  return std::any_of(all.begin(), all.end(), [&](auto& o) { return o.name == option; });
}

/// Lets a kind of report write its part of the page.
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

void key_items(Page& p, const std::vector<OutputKey>& keys) {
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
  p.prose("With --json each line is an object. Its key type tells which; keys come in this order.");
  for (auto& kind : json_kinds(tool)) {
    p.macro(fmt::format("Ss {}", sentence(kind.type).substr(0, kind.type.size())));
    p.prose(sentence(kind.written));
    key_items(p, kind.keys);
  }
  p.macro("Ss CSV");
  p.prose("With --csv a first line names the columns:");
  csv_names(p, tool.report->csv());
  for (auto& other : tool.other_reports) {
    p.prose(fmt::format("With --{} they are:", other.when));
    csv_names(p, other.report->csv());
  }
}

void user_stacks_section(Page& p) {
  p.section("USER STACKS");
  p.prose(
      "Stacks of programs and libraries that were built without frame pointers, as most "
      "distributions' are, are walked by the unwind tables that these carry (.eh_frame), on x86-64. "
      "The tables are read when a process is first met. Through code without tables frame pointers "
      "are tried; how many frames were found so is told with the stack, as [guessed frames: 1], and "
      "in JSON. In code that keeps neither, such frames may be wrong. On arm64 --unwind auto walks by "
      "frame pointers alone: distributions keep them there, but for functions that call no other; "
      "where a task stands in such a one, its caller is missing.");
  p.prose(
      "A stack that ends before the place where its program or thread begins is marked at its outer "
      "end, such as [truncated: no mapping], and how many were, is told at the end by reason:");
  p.begin("-tag -width Ds");
  for (auto& reason : cut_reasons()) {
    if (reason.words.empty()) continue;
    p.item("Sy " + inline_words(reason.words));
    p.prose(sentence(reason.meaning));
  }
  p.end();
  p.prose(
      "When a library takes another one's place at the same addresses, the old one's tables hold for "
      "50 ms more; a stack of that time may have a wrong frame.");
}

void exit_section(Page& p) {
  p.section("EXIT STATUS");
  p.begin("-tag -width Ds -compact");
  for (auto& s : exit_statuses()) {
    p.item(std::to_string(s.status));
    p.prose(sentence(s.meaning));
  }
  p.end();
}

/// What capabilities(7) the tool asks for, and why.
void rights_section(Page& p, const Tool& tool) {
  auto needs = needed_capabilities(tool);
  p.section("RIGHTS");
  if (needs.empty()) {
    p.prose("None: any user may run it.");
    return;
  }
  p.prose("Root, or these capabilities:");
  p.begin("-tag -width Ds -compact");
  for (auto& need : needs) {
    p.item(name_of(need.capability));
    p.prose(sentence(fmt::format("{}{}", need.always ? "" : "optional: ", need.purpose)));
  }
  p.end();
  p.macro("Pp");
  p.prose(
      "What is not needed any more when all is attached is given up before the first event is "
      "read; -v says what is kept.");
}

void see_also(Page& p, const Naming& naming, std::string_view subsystem, std::string_view self) {
  std::vector<std::string> names;
  if (self != "coretap") names.emplace_back("coretap");
  for (auto& entry : registry())
    if (entry.name != self && (subsystem.empty() || entry.subsystem == subsystem))
      names.push_back(naming.page(entry.name));
  std::sort(names.begin(), names.end());
  if (names.empty()) return;
  p.section("SEE ALSO");
  for (auto& name : names)
    p.macro(fmt::format("Xr {} 8{}", name, name == names.back() ? "" : " ,"));
}

/// Items of all tools, in a list for each subsystem.
template <class Write>
void each_by_subsystem(Page& p, Write write) {
  std::string_view subsystem;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    if (tool.subsystem != subsystem) {
      if (!subsystem.empty()) p.end();
      subsystem = tool.subsystem;
      p.macro(fmt::format("Ss {}", inline_words(subsystem)));
      p.begin("-tag -width Ds -compact");
    }
    write(tool);
  }
  if (!subsystem.empty()) p.end();
}

/// Each with the command line that answers it.
void question_items(Page& p, const Naming& naming, const Tool& tool) {
  for (auto& q : tool.questions) {
    p.item(inline_words(q.question));
    p.example(naming.line(tool.name, q.command));
  }
}

}  // namespace

std::string man_page(const Tool& tool, const Naming& naming) {
  Page p;
  heading(p, naming.page(tool.name), tool.summary);
  synopsis_section(p, tool, naming);
  p.section("DESCRIPTION");
  p.prose(tool.description);
  p.macro("Pp");
  if (naming.own_names) {
    p.macro("Nm");
    p.prose("is a name of the one executable");
  } else {
    p.macro(fmt::format("Nm {}", naming.command(tool.name)));
    p.prose("is one of the tools in the executable");
  }
  p.macro("Xr coretap 8 ,");
  p.prose(
      "which says what rights and which kernel it needs. Data goes to standard output; notes, "
      "errors "
      "and the count of what is not in the data go to standard error.");
  options_section(p, tool);
  attach_section(p, tool);
  p.section("OUTPUT");
  PageManual manual(p, tool);
  tool.report->manual(manual);
  for (auto& other : tool.other_reports) {
    p.macro("Pp");
    p.prose(fmt::format("With --{} there is another report instead.", other.when));
    other.report->manual(manual);
  }
  if (has(tool, "unwind")) user_stacks_section(p);
  json_section(p, tool);
  rights_section(p, tool);
  exit_section(p);
  p.section("OVERHEAD");
  p.prose(sentence(tool.overhead));
  p.section("ANSWERS");
  p.begin("-tag -width Ds -compact");
  question_items(p, naming, tool);
  p.end();
  p.section("EXAMPLES");
  for (auto& e : tool.examples) {
    if (&e != &tool.examples.front()) p.macro("Pp");
    auto words = sentence(e.meaning);
    words.back() = ':';
    p.prose(words);
    p.macro("Pp");
    p.example(naming.line(tool.name, e.command));
  }
  see_also(p, naming, tool.subsystem, tool.name);
  return p.finish();
}

std::string coretap_man_page(const Naming& naming) {
  Page p;
  heading(p, "coretap", "CO-RE BPF tracers for Linux in one executable");
  p.section("SYNOPSIS");
  for (auto line :
       {"Ar TOOL Op Ar OPTIONS", "Cm list Op Fl -json", "Cm help Ar TOOL", "Cm find Ar WORD ...",
        "Cm doctor Op Fl -json",
        "Cm link Oo Fl -prefix Ar PREFIX Oc Oo Fl -remove Oc Op Ar DIRECTORY", "Fl -version"}) {
    p.macro("Nm coretap");
    p.macro(line);
  }
  p.section("DESCRIPTION");
  p.macro("Nm");
  p.prose("holds a suite of tracers in one executable.");
  if (naming.own_names) {
    p.prose(
        "Each tool is a name (a link) of that executable, and its first argument may be the name "
        "of a tool just as well.");
    if (!naming.prefix.empty()) p.prose(fmt::format("These names begin with {}.", naming.prefix));
  } else {
    p.prose("Its first argument is the name of a tool; link makes names that can be called.");
  }
  p.prose("There is nothing else to install: no compiler, no kernel headers.");
  p.begin("-tag -width Ds");
  p.item("Ar TOOL Op Ar OPTIONS");
  p.prose("Runs a tool.");
  p.item("Cm list Op Fl -json");
  p.prose("Lists all tools by subsystem, each with what it shows.");
  p.item("Cm help Ar TOOL");
  p.prose("Tells what a tool does, its options and examples.");
  p.item("Cm find Ar WORD ...");
  p.prose(
      "Prints what has words that begin with all of these: questions with the command lines that "
      "answer them, tools, and options. Ends with 1 if nothing has.");
  p.item("Cm doctor Op Fl -json");
  p.prose("Tells what this kernel and the rights of the caller can run, and what is missing.");
  p.item("Cm link Oo Fl -prefix Ar PREFIX Oc Oo Fl -remove Oc Op Ar DIRECTORY");
  p.prose(
      "Makes a link to this executable for each tool in the directory, by default that of the "
      "executable. With a prefix, which ends in a hyphen, their names begin with it: what follows "
      "the last hyphen is the tool. Nothing is overwritten: where a name is something else already, "
      "as it is where another package has a tool of that name, no link is made. With --remove the "
      "links of this executable are removed instead, of this prefix or of any.");
  p.item("Fl -version");
  p.prose("Prints the version.");
  p.end();
  p.section("WHICH TOOL");
  p.prose("Each question has below it a command line that answers it.");
  each_by_subsystem(p, [&](const Tool& tool) { question_items(p, naming, tool); });
  p.section("TOOLS");
  each_by_subsystem(p, [&](const Tool& tool) {
    p.item(fmt::format("Xr {} 8", naming.page(tool.name)));
    p.prose(sentence(tool.summary));
  });
  p.section("RIGHTS");
  p.prose(
      "Tools need root, or the capabilities CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN has both) and, "
      "some of them, others, which their own pages and coretap doctor list. When all is attached a "
      "tool gives up, for good, what it does not need any more, root's rights too. A command after "
      "-- keeps the rights of the caller.");
  p.macro("Pp");
  p.prose(
      "Capabilities can be given to the file: whoever may execute it then sees what all users of "
      "the machine do, so let only a trusted group execute it:");
  p.macro("Pp");
  p.example("setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_syslog+ep coretap");
  p.macro("Pp");
  p.prose(
      "The kernel must be Linux 5.10 or newer and have its type information in "
      "/sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF). Kernel lockdown in the mode "
      "confidentiality forbids tracing. A tool that cannot run ends with status 3 and says what is "
      "missing; --explain tells how this kernel would be traced.");
  exit_section(p);
  p.section("EXAMPLES");
  p.prose("Which tools are there, and which of them run here:");
  p.macro("Pp");
  p.example("coretap list");
  p.example("coretap find slow disk");
  p.example("sudo coretap doctor");
  p.macro("Pp");
  p.prose("Tools by their own names, where another suite of such tools is installed:");
  p.macro("Pp");
  p.example("sudo coretap link --prefix ct- /usr/local/sbin");
  see_also(p, naming, {}, "coretap");
  return p.finish();
}

}  // namespace coretap
