#include "run/commands.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/json.hpp"
#include "coretap/tool.hpp"
#include "lists/lists.hpp"
#include "text/errors.hpp"

namespace coretap {

void note_tools_in_build(std::string_view command) {
  if (auto few = tools_in_build(); !few.empty())
    fmt::print(stderr, "coretap {}: {}\n", command, few);
}

int run_list(const Config& config, const std::vector<std::string>&) {
  note_tools_in_build("list");
  bool json = config.given("json");
  Sink out;
  std::string_view subsystem;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    if (json) {
      JsonLine line;
      line.text("tool", tool.name).text("subsystem", tool.subsystem).text("summary", tool.summary);
      std::vector<std::string_view> others;
      for (auto& other : tool.other_names) others.push_back(other.name);
      out.line(line.texts("other_names", others).finish());
      continue;
    }
    if (tool.subsystem != subsystem) {
      out.line(fmt::format("{}{}:", subsystem.empty() ? "" : "\n", tool.subsystem));
      subsystem = tool.subsystem;
    }
    out.line(fmt::format("  {:<16} {}", tool.name, tool.summary));
    for (auto& other : tool.other_names)
      out.line(fmt::format("  {:<16} {} {}", other.name, tool.name, other.option));
  }
  if (json) return end_of(out);
  out.line("\ncommands that list:");
  for (auto* command : kListCommands)
    out.line(fmt::format("  {:<16} {}", command->name, command->summary));
  return end_of(out);
}

namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return tolower(c); });
  return low;
}

/// True if a word of the text starts with this.
bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if (at == 0 || !isalnum(static_cast<unsigned char>(text[at - 1]))) return true;
  return false;
}

/// True if each of these words, or its singular, starts a word of the text. Ignores case.
bool has_words(std::string_view text, const std::vector<std::string>& words) {
  auto low = lower(text);
  return std::all_of(words.begin(), words.end(), [&](auto& word) {
    auto w = lower(word);
    if (w.size() > 3 && w.back() == 's') w.pop_back();
    return has_word(low, w);
  });
}

/// The results of `find`.
struct Finds {
  struct Answer {
    std::string_view tool, question, command;
  };
  struct Named {
    std::string_view name, summary;
  };
  struct OptionOf {
    std::string words, doc;
    std::vector<std::string_view> tools;
  };
  std::vector<Answer> answers;
  std::vector<Named> tools;
  std::map<std::string, OptionOf> options;  ///< by their descriptions

  bool empty() const { return answers.empty() && tools.empty() && options.empty(); }
};

Finds find(const std::vector<std::string>& words) {
  Finds found;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    for (auto& q : tool.questions)
      if (has_words(fmt::format("{} {} {}", q.question, q.command, tool.summary), words))
        found.answers.push_back({tool.name, q.question, q.command});
    if (has_words(fmt::format("{} {} {}", tool.name, tool.subsystem, tool.summary), words))
      found.tools.push_back({tool.name, tool.summary});
    for (auto& o : all_options(tool)) {
      auto said = option_words(o);
      auto text = fmt::format("{} {}", said, o.doc);
      if (!has_words(text, words)) continue;
      auto at =
          found.options.try_emplace(text, Finds::OptionOf{said, std::string(o.doc), {}}).first;
      at->second.tools.push_back(tool.name);
    }
  }
  return found;
}

void print_json(Sink& out, const Finds& found) {
  for (auto& q : found.answers) {
    JsonLine line;
    line.text("type", "question").text("tool", q.tool).text("question", q.question);
    out.line(line.text("command", fmt::format("coretap {}", q.command)).finish());
  }
  for (auto& t : found.tools) {
    JsonLine line;
    out.line(line.text("type", "tool").text("tool", t.name).text("summary", t.summary).finish());
  }
  for (auto& [text, o] : found.options) {
    JsonLine line;
    auto at = o.words.find_first_not_of(' ');
    line.text("type", "option").text("option", o.words.substr(at)).text("doc", o.doc);
    out.line(line.texts("tools", o.tools).finish());
  }
}

void print_text(Sink& out, const Finds& found) {
  if (!found.answers.empty()) out.line("Questions:");
  for (auto& q : found.answers)
    out.write(fmt::format("  {}\n      coretap {}\n", q.question, q.command));
  if (!found.tools.empty()) out.line("Tools:");
  for (auto& t : found.tools) out.line(fmt::format("  {:<16} {}", t.name, t.summary));
  if (!found.options.empty()) out.line("Options:");
  for (auto& [text, o] : found.options)
    out.write(fmt::format("  {}\n{}{}", o.words, wrap(o.doc, 6),
                          o.tools.size() == registry().size()
                              ? "      in all tools\n"
                              : wrap(fmt::format("in {}", fmt::join(o.tools, ", ")), 6)));
}

}  // namespace

int run_find(const Config& config, const std::vector<std::string>& words) {
  auto found = find(words);
  note_tools_in_build("find");
  Sink out;
  if (config.given("json"))
    print_json(out, found);
  else
    print_text(out, found);
  if (found.empty()) {
    print_error("coretap", {"find: no question, tool or option has all these words",
                            {},
                            "use fewer or shorter words; coretap list shows all tools"});
    return kFailed;
  }
  return end_of(out);
}

}  // namespace coretap
