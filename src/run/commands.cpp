#include "run/commands.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "text/errors.hpp"
#include "text/json.hpp"

namespace coretap {

int run_list(const Config& config, const std::vector<std::string>&) {
  bool json = config.given("json");
  Sink out;
  std::string_view subsystem;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    if (json) {
      JsonLine line;
      line.text("tool", tool.name).text("subsystem", tool.subsystem).text("summary", tool.summary);
      out.line(line.finish());
      continue;
    }
    if (tool.subsystem != subsystem) {
      out.line(fmt::format("{}{}:", subsystem.empty() ? "" : "\n", tool.subsystem));
      subsystem = tool.subsystem;
    }
    out.line(fmt::format("  {:<16} {}", tool.name, tool.summary));
  }
  return end_of(out);
}

namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return tolower(c); });
  return low;
}

/// Begins a word of the text with this?
bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if (at == 0 || !isalnum(static_cast<unsigned char>(text[at - 1]))) return true;
  return false;
}

/// Has the text words that begin with all of these, or with their singulars? In any case.
bool has_words(std::string_view text, const std::vector<std::string>& words) {
  auto low = lower(text);
  return std::all_of(words.begin(), words.end(), [&](auto& word) {
    auto w = lower(word);
    if (w.size() > 3 && w.back() == 's') w.pop_back();
    return has_word(low, w);
  });
}

}  // namespace

int run_find(const Config&, const std::vector<std::string>& words) {
  std::string questions, tools, options;
  std::map<std::string, std::vector<std::string_view>> having;  // what is said of an option: tools
  for (auto& entry : registry()) {
    auto tool = build(entry);
    for (auto& q : tool.questions)
      if (has_words(fmt::format("{} {} {}", q.question, q.command, tool.summary), words))
        questions += fmt::format("  {}\n      coretap {}\n", q.question, q.command);
    if (has_words(fmt::format("{} {} {}", tool.name, tool.subsystem, tool.summary), words))
      tools += fmt::format("  {:<16} {}\n", tool.name, tool.summary);
    for (auto& o : all_options(tool)) {
      auto text = fmt::format("  {}\n{}", option_words(o), wrap(o.doc, 6));
      if (has_words(text, words)) having[text].push_back(tool.name);
    }
  }
  for (auto& [text, all] : having)
    options += text + (all.size() == registry().size()
                           ? "      in all tools\n"
                           : wrap(fmt::format("in {}", fmt::join(all, ", ")), 6));
  Sink out;
  for (auto& [title, text] :
       {std::pair{"Questions", &questions}, {"Tools", &tools}, {"Options", &options}})
    if (!text->empty()) out.write(fmt::format("{}:\n{}", title, *text));
  if (questions.empty() && tools.empty() && options.empty()) {
    print_error("coretap", {"find: no question, tool or option has all these words",
                            {},
                            "use fewer or shorter words; coretap list shows all tools"});
    return kFailed;
  }
  return end_of(out);
}

}  // namespace coretap
