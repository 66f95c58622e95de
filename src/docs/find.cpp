// `coretap find`: which tool, command or page answers a question.
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "coretap/json.hpp"
#include "coretap/sanitize.hpp"
#include "docs/commands.hpp"
#include "docs/search.hpp"
#include "run/commands.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

/// An option that tools share.
struct FoundOption {
  std::string words, doc;
  std::vector<std::string_view> tools;

  std::string json() const {
    JsonLine line;
    line.text("type", "option").text("option", words.substr(words.find_first_not_of(' ')));
    return fmt::format("{}\n", line.text("doc", doc).texts("tools", tools).finish());
  }
  std::string text() const {
    auto all = tools.size() == registry().size();
    return fmt::format(
        "  {}\n{}{}", words, wrap(doc, 6),
        all ? "      in all tools\n" : wrap(fmt::format("in {}", fmt::join(tools, ", ")), 6));
  }
};

/// True if each of these is the beginning of a word of the text.
bool has_beginnings(std::string_view text, const std::vector<std::string>& stems) {
  auto words = plain_words(text);
  return std::ranges::all_of(stems, [&](auto& s) {
    return std::ranges::any_of(words, [&](auto& w) { return w.starts_with(s); });
  });
}

/// Options with all words.
std::string options_found(const std::vector<std::string>& words, bool json) {
  std::vector<std::string> stems;
  for (auto& word : words)
    for (auto& part : plain_words(word)) stems.push_back(stem(part));
  if (stems.empty()) return {};
  std::map<std::string, FoundOption> by_text;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    for (auto& o : all_options(tool)) {
      auto said = option_words(o);
      auto text = fmt::format("{} {}", said, o.doc);
      if (!has_beginnings(text, stems)) continue;
      auto& option = by_text[text];
      option.words = said;
      option.doc = o.doc;
      option.tools.push_back(tool.name);
    }
  }
  std::string out;
  for (auto& [text, o] : by_text) out += json ? o.json() : o.text();
  return out;
}

/// One list of results, as lines.
struct FoundLines {
  std::string_view title, type;
  std::string_view named;  ///< key of the name
  const std::vector<Match>& matches;

  std::string json() const {
    std::string out;
    for (auto& m : matches) {
      JsonLine line;
      line.text("type", type).text(named, m.name);
      if (m.command.empty())
        line.text("summary", m.text);
      else
        line.text("question", m.text).text("command", fmt::format("coretap {}", m.command));
      out += fmt::format("{}\n", line.finish());
    }
    return out;
  }
  std::string text() const {
    std::string out;
    for (auto& m : matches)
      out += m.command.empty() ? fmt::format("  {:<16} {}\n", m.name, m.text)
                               : fmt::format("  {}\n      coretap {}\n", m.text, m.command);
    return out;
  }
};

std::string elsewhere_found(const std::vector<const NotHere*>& rows, bool json) {
  std::string out;
  for (auto* row : rows) {
    JsonLine line;
    line.text("type", "elsewhere").text("command", row->command).text("why", row->why);
    out += json ? fmt::format("{}\n", line.finish())
                : fmt::format("  {}\n{}", row->command, wrap(row->why, 6));
  }
  return out;
}

}  // namespace

Matches search(const std::vector<std::string>& words) {
  std::vector<Described> all;
  for (auto& command : commands())
    all.push_back({command.name, command.summary, command.description});
  return search(words, all);
}

int run_find(const Config& config, const std::vector<std::string>& words) {
  const bool json = config.given("json");
  const auto found = search(words);
  const auto options = options_found(words, json);
  note_tools_in_build("find");
  if (found.empty() && options.empty()) {
    print_error("coretap", {"find: nothing matches these words",
                            {},
                            "use fewer or other words; coretap list shows all tools, coretap guide "
                            "the first steps"});
    return kFailed;
  }
  if (!found.unknown.empty() && options.empty())
    fmt::print(stderr, "coretap find: in no text here: {}\n",
               printable(fmt::to_string(fmt::join(found.unknown, ", "))));
  Sink out;
  auto section = [&](std::string_view title, const std::string& lines) {
    if (!lines.empty()) out.write(json ? lines : fmt::format("{}:\n{}", title, lines));
  };
  section("Not in coretap", elsewhere_found(found.elsewhere, json));
  const FoundLines own{"Commands", "command", "name", found.commands};
  if (found.commands_first) section(own.title, json ? own.json() : own.text());
  for (auto& lines : {FoundLines{"Questions", "question", "tool", found.questions},
                      {"Tools", "tool", "tool", found.tools},
                      {"Guide", "page", "page", found.pages}})
    section(lines.title, json ? lines.json() : lines.text());
  if (!found.commands_first) section(own.title, json ? own.json() : own.text());
  section("Options", options);
  return end_of(out);
}

}  // namespace coretap
