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
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return tolower(c); });
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
  return std::ranges::all_of(words, [&](auto& word) {
    auto w = lower(word);
    if (w.size() > 3 && w.back() == 's') w.pop_back();
    return has_word(low, w);
  });
}

/// An option that tools share.
struct FoundOption {
  std::string words, doc;
  std::vector<std::string_view> tools;

  std::string json() const {
    JsonLine line;
    line.text("type", "option").text("option", words.substr(words.find_first_not_of(' ')));
    return std::string(line.text("doc", doc).texts("tools", tools).finish());
  }
  std::string text() const {
    auto all = tools.size() == registry().size();
    return fmt::format(
        "  {}\n{}{}", words, wrap(doc, 6),
        all ? "      in all tools\n" : wrap(fmt::format("in {}", fmt::join(tools, ", ")), 6));
  }
};

/// The output of `find`, by section.
struct Finds {
  std::string questions, tools, options;

  Finds(const std::vector<std::string>& words, bool json) {
    std::map<std::string, FoundOption> by_text;
    for (auto& entry : registry()) {
      auto tool = build(entry);
      for (auto& q : tool.questions) {
        if (!has_words(fmt::format("{} {} {}", q.question, q.command, tool.summary), words))
          continue;
        JsonLine line;
        line.text("type", "question").text("tool", tool.name).text("question", q.question);
        line.text("command", fmt::format("coretap {}", q.command));
        questions += json ? fmt::format("{}\n", line.finish())
                          : fmt::format("  {}\n      coretap {}\n", q.question, q.command);
      }
      if (has_words(fmt::format("{} {} {}", tool.name, tool.subsystem, tool.summary), words)) {
        JsonLine line;
        line.text("type", "tool").text("tool", tool.name).text("summary", tool.summary);
        tools += json ? fmt::format("{}\n", line.finish())
                      : fmt::format("  {:<16} {}\n", tool.name, tool.summary);
      }
      for (auto& o : all_options(tool)) {
        auto said = option_words(o);
        auto text = fmt::format("{} {}", said, o.doc);
        if (!has_words(text, words)) continue;
        auto& option = by_text[text];
        option.words = said;
        option.doc = o.doc;
        option.tools.push_back(tool.name);
      }
    }
    for (auto& [text, o] : by_text) options += json ? o.json() + '\n' : o.text();
  }
};

}  // namespace

int run_find(const Config& config, const std::vector<std::string>& words) {
  const bool json = config.given("json");
  const Finds found(words, json);
  note_tools_in_build("find");
  Sink out;
  for (auto [title, lines] : {std::pair{"Questions:\n", &found.questions},
                              {"Tools:\n", &found.tools},
                              {"Options:\n", &found.options}})
    if (!lines->empty()) out.write((json ? "" : title) + *lines);
  if (found.questions.empty() && found.tools.empty() && found.options.empty()) {
    print_error("coretap", {"find: no question, tool or option has all these words",
                            {},
                            "use fewer or shorter words; coretap list shows all tools"});
    return kFailed;
  }
  return end_of(out);
}

}  // namespace coretap
