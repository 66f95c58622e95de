#include "cli/help.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/parse.hpp"

namespace coretap {

namespace {

constexpr int kColumns = 80;
constexpr int kDocColumn = 28;              // column of the text beside options and arguments
constexpr std::size_t kWidestExample = 42;  // the meaning of a longer command is on the next line

/// Group of each option that the library defines; other shared options are in the last group.
constexpr std::string_view kOwn = "Options";
constexpr std::string_view kOther = "Other";
struct Place {
  std::string_view title;
  std::array<std::string_view, 25> names;
};
constexpr Place kPlaces[] = {
    {"Filters",
     {"pid",       "tid",        "ppid",     "uid",         "comm",  "name",      "cgroup",
      "cpu",       "directory",  "disk",     "node",        "zone",  "ipv4",      "ipv6",
      "localport", "remoteport", "laddr",    "raddr",       "netns", "container", "pod",
      "unit",      "not-pid",    "not-comm", "include-self"}},
    {"Time", {"interval", "duration"}},
    {"Sampling", {"frequency", "period"}},
    {"Output",
     {"timestamp", "noclear",      "milliseconds", "microseconds", "nanoseconds", "extended",
      "print-uid", "kernel-stack", "top",          "sort",         "wide",        "heatmap",
      "output",    "rotate",       "append",       "json",         "csv",         "output-format",
      "by",        "color",        "perfetto"}},
    {"Stacks",
     {"user-stacks-only", "kernel-stacks-only", "delimited", "folded", "annotations", "svg",
      "color-by", "pprof", "dot", "functions", "tree", "inverted", "callers-of", "callees-of",
      "least", "screen", "offset", "perf-max-stack-depth", "stack-storage-size"}},
    {"Diagnostics", {"strict", "exit-status", "explain", "verbose"}},
    {"Limits", {"max-keys", "max-rate", "ring-size"}},
};

std::string_view title_of(const Option& o) {
  if (!o.shared) return kOwn;
  for (auto& place : kPlaces)
    if (std::find(place.names.begin(), place.names.end(), o.name) != place.names.end())
      return place.title;
  return kOther;
}

std::string examples(const Tool& tool) {
  std::vector<std::string> commands;
  std::size_t widest = 0;
  for (auto& e : tool.examples) {
    commands.push_back(as_typed(tool.name, e.command));
    if (commands.back().size() <= kWidestExample) widest = std::max(widest, commands.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < commands.size(); i++) {
    auto& command = commands[i];
    auto meaning = wrap(tool.examples[i].meaning, static_cast<int>(widest + 4), kColumns);
    if (command.size() <= kWidestExample)
      text += meaning.replace(0, command.size() + 2, "  " + command);
    else
      text += fmt::format("  {}\n{}", command, meaning);
  }
  return text;
}

/// A paragraph that begins with its title.
std::string titled(std::string_view title, std::string_view words) {
  return wrap(fmt::format("{}: {}", title, words), 0, kColumns);
}

}  // namespace

std::string help_row(std::string words, std::string_view doc) {
  words = "  " + words;
  auto text = wrap(doc, kDocColumn, kColumns);
  if (words.size() < kDocColumn) return text.replace(0, words.size(), words);
  return words + '\n' + text;
}

std::vector<std::string_view> paragraphs_in(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  while (!text.empty()) {
    paragraphs.push_back(text.substr(0, text.find("\n\n")));
    text.remove_prefix(std::min(text.size(), paragraphs.back().size() + 2));
  }
  return paragraphs;
}

std::string wrap(std::string_view text, int indent, int columns) {
  std::string out, line;
  auto flush = [&] {
    if (!line.empty()) out += std::string(indent, ' ') + line + '\n';
    line.clear();
  };
  for (auto paragraph : paragraphs_in(text)) {
    if (!out.empty()) out += '\n';
    for (auto word : words_in(paragraph)) {
      if (!line.empty() &&
          indent + line.size() + 1 + word.size() > static_cast<std::size_t>(columns))
        flush();
      if (!line.empty()) line += ' ';
      line += word;
    }
    flush();
  }
  return out;
}

std::string option_words(const Option& o) {
  auto words = o.letter ? fmt::format("-{}, ", o.letter) : "    ";
  words += fmt::format("--{}", o.name);
  if (!o.metavar.empty()) words += fmt::format(" {}", o.metavar);
  return words;
}

std::string synopsis(const Tool& tool) {
  std::string text = "[OPTIONS]";
  std::string ends;  // optional arguments are nested: INTERVAL [COUNT]
  for (auto& p : tool.positionals) {
    text += fmt::format(" {}{}{}", p.needed() ? "" : "[", p.metavar, p.repeats() ? "..." : "");
    if (!p.needed()) ends += ']';
  }
  return text + ends + " [-- COMMAND ARGS...]";
}

std::string condition_words(std::string_view when) {
  if (when.empty()) return {};
  return (when.starts_with('!') ? "without " : "with ") + condition_options(when);
}

std::vector<Argument> arguments(const Tool& tool) {
  std::vector<Argument> all;
  for (auto& p : tool.positionals) all.push_back({p.metavar, p.doc});
  // Same rule as in the parser: a command is a filter if the tool can filter by process.
  bool filters = std::any_of(tool.options.begin(), tool.options.end(),
                             [](auto& o) { return o.name == "pid"; });
  all.push_back({"-- COMMAND",
                 filters ? "run this command, trace it and its children, and exit when it does"
                         : "run this command and exit when it does; the whole system is traced"});
  return all;
}

std::vector<OptionGroup> option_groups(const Tool& tool) {
  std::vector<OptionGroup> groups = {{kOwn, {}}};
  for (auto& place : kPlaces) groups.push_back({place.title, {}});
  groups.push_back({kOther, {}});
  for (auto& option : all_options(tool))
    for (auto& group : groups)
      if (group.title == title_of(option)) group.options.push_back(option);
  std::erase_if(groups, [](auto& group) { return group.options.empty(); });
  return groups;
}

const std::vector<ExitStatus>& exit_statuses() {
  static const std::vector<ExitStatus> all = {
      {kOk, "success"},
      {kFailed, "failed while running"},
      {kUsage, "the command line is wrong"},
      {kUnsupported, "this kernel or these privileges cannot run it"},
      {kDataLost, "data was lost (only with --strict)"},
      {kCannotRun, "the command after -- cannot be executed"},
      {kNotFound, "the command after -- does not exist"},
  };
  return all;
}

std::string help_text(const Tool& tool) {
  auto usage = fmt::format("Usage: {} {}", command_of(tool.shown_name()), synopsis(tool));
  if (auto last = usage.rfind(" [--"); usage.size() > kColumns && last != usage.npos)
    usage.insert(last, "\n      ");
  auto text = fmt::format("{}: {}\n\n{}\n\n", tool.shown_name(), tool.summary, usage);
  auto& [other, implied] = tool.called;
  if (!other.empty())
    text += wrap(fmt::format("{} is {} {}.", other, tool.name, implied), 0, kColumns) + '\n';
  text += wrap(tool.description, 0, kColumns);
  if (other.empty() && !tool.other_names.empty())
    text += '\n' + titled("Other names", other_names_of(tool));
  text += "\nExamples:\n" + examples(tool);
  text += "\nArguments:\n";
  for (auto& a : arguments(tool)) text += help_row(std::string(a.words), a.doc);
  for (auto& group : option_groups(tool)) {
    text += fmt::format("\n{}:\n", group.title);
    for (auto& o : group.options) text += help_row(option_words(o), o.doc);
  }
  text += '\n' + titled("Overhead", tool.overhead);
  std::string statuses;
  for (auto& s : exit_statuses())
    statuses += fmt::format("{}{} {}", statuses.empty() ? "" : "; ", s.status, s.meaning);
  text += titled("Exit status", statuses);
  text += titled("More", fmt::format("man {}; coretap doctor {}; coretap list", page_of(tool.name),
                                     tool.name));
  return text;
}

}  // namespace coretap
