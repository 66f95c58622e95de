// coretap-migrate(7): for users of bcc and libbpf-tools, from the tools' declarations.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "docs/man.hpp"
#include "docs/man_parts.hpp"

namespace coretap {

namespace {

void option_item(Page& p, char letter, std::string_view name, std::string_view meaning) {
  std::string names;
  if (letter) names = fmt::format("Fl {}", letter);
  if (!name.empty()) names += fmt::format("{}Fl -{}", names.empty() ? "" : " , ", name);
  p.item(names, meaning);
}
void refused_item(Page& p, const Elsewhere& option) {
  option_item(p, option.letter, option.name, fmt::format("refused: {}", option.instead));
}

void in_general(Page& p) {
  p.section("ALL TOOLS");
  p.begin("-bullet");
  for (
      std::string_view words :
      {"Tools are called coretap TOOL, or by links that coretap link makes, with a prefix if "
       "another suite has these names: coretap link --prefix ct- /usr/local/sbin.",
       "No compiler, kernel headers or Python are needed, and most tools need no kprobes; "
       "--explain prints which attach points a tool uses.",
       "Options have the same meaning as in libbpf-tools and bcc, or are refused with what to use "
       "instead, or a note at the start says what they mean here and there. Where these two "
       "differ, the page of the tool says which one it follows. Long names may be written with "
       "underscores.",
       "-n or --name matches a part of the command name. --comm compares whole names, and takes "
       "a list.",
       "Only data goes to standard output. The line that announces tracing, notes and the ledger "
       "go to standard error, so that output can be piped as it is.",
       "Events that were lost, not shown or not matched are counted and reported when tracing ends; "
       "with --strict lost data makes the exit status 4.",
       "Tables start with the columns of libbpf-tools and bcc, in their order, and their own ones "
       "follow, unless the page of the tool says what differs. Shares are numbers without a % sign, "
       "which is in the title; they and rates have two decimals. Errors are names, such as ENOENT, "
       "in all tools; success is 0, or - in a column that is only here. There, they are numbers in "
       "most tools.",
       "The time of day of an interval is 13:05:59, that of an event 13:05:59.123. There, most "
       "events have no milliseconds.",
       "Reports that are tables have a line of titles each, below the time of day if the tool has "
       "no option for it. Where each line is an event or an interval, the titles are printed once. "
       "There, some tools print them once or not at all.",
       "All tools have --json and --csv, with the same names and units; -o writes to a file.",
       "All tools that see tasks can filter by pid, thread, user, command name, cgroup, "
       "container and systemd unit, and -- COMMAND traces a command from its start."})
    p.item("", words);
  p.end();
  p.macro("Ss Options that no tool has");
  p.begin("-tag -width Ds");
  for (auto& option : refused_by_all()) refused_item(p, option);
  p.end();
}

}  // namespace

bool has_differences(const Tool& tool) {
  return !tool.differs.empty() || !tool.elsewhere.empty() || !tool.other_meanings.empty();
}

void differences(Page& p, const Tool& tool) {
  if (!has_differences(tool)) return;
  p.begin("-tag -width Ds");
  constexpr std::pair<Difference::Where, std::string_view> kSuites[] = {
      {Difference::both, "bcc and libbpf-tools"},
      {Difference::bcc, "bcc"},
      {Difference::libbpf_tools, "libbpf-tools"}};
  for (auto [where, name] : kSuites) {
    bool first = true;
    for (auto& d : tool.differs) {
      if (d.where != where) continue;
      if (std::exchange(first, false)) p.item(inline_words(name));
      p.prose(d.what);
    }
  }
  for (auto& option : tool.other_meanings)
    if (option.letter || !option.name.empty())  // else `differs` says it
      option_item(p, option.letter, option.name, option.note);
  for (auto& option : tool.elsewhere) refused_item(p, option);
  p.end();
}

std::string migrate_man_page() {
  Page p("coretap-migrate", 7, "what differs in coretap for users of bcc and libbpf-tools");
  p.section("DESCRIPTION");
  p.prose(
      "Most command lines of the tools of bcc and libbpf-tools work here with the same meaning "
      "and columns. This page lists what differs, and why. In what follows, here means coretap "
      "and there means the other suite.");
  in_general(p);
  p.section("BY TOOL");
  p.prose(
      "Tools that are not listed are in neither suite. Refused options are followed by what to "
      "use instead.");
  std::vector<Tool> tools;
  for (auto& entry : registry())
    if (auto tool = build(entry); has_differences(tool)) tools.push_back(std::move(tool));
  std::sort(tools.begin(), tools.end(), [](auto& a, auto& b) { return a.name < b.name; });
  for (auto& tool : tools) {
    p.macro(fmt::format("Ss {}", tool.name));
    differences(p, tool);
    std::string names;
    for (auto& o : tool.options)
      for (auto name : o.names())
        if (name != o.name)
          names += fmt::format("{} --{} is --{}", names.empty() ? "" : ",", name, o.name);
    if (!names.empty()) p.prose(fmt::format("Other names:{}.", names));
  }
  return p.finish({"coretap-output 7", "coretap 8"});
}

}  // namespace coretap
