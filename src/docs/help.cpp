#include "docs/help.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/config.hpp"

namespace coretap {

std::string wrap(std::string_view text, int indent, int columns) {
  std::string out, line;
  auto flush = [&] {
    if (!line.empty()) out += std::string(indent, ' ') + line + '\n';
    line.clear();
  };
  while (!text.empty()) {
    auto paragraph = text.substr(0, text.find("\n\n"));
    text.remove_prefix(std::min(text.size(), paragraph.size() + 2));
    while (!paragraph.empty()) {
      auto word = paragraph.substr(0, paragraph.find_first_of(" \n"));
      paragraph.remove_prefix(std::min(paragraph.size(), word.size() + 1));
      if (word.empty()) continue;
      if (!line.empty() && indent + line.size() + 1 + word.size() > static_cast<std::size_t>(columns))
        flush();
      if (!line.empty()) line += ' ';
      line += word;
    }
    flush();
    if (!text.empty()) out += '\n';
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
  if (tool.positionals == Positionals::interval_count) text += " [INTERVAL [COUNT]]";
  if (tool.positionals == Positionals::duration) text += " [DURATION]";
  return text + " [-- COMMAND ARGS...]";
}

namespace {

std::string option_list(const std::vector<Option>& options, bool shared) {
  std::string text;
  for (auto& o : options) {
    if (o.shared != shared) continue;
    auto words = "  " + option_words(o);
    auto doc = wrap(o.doc, 30);
    if (words.size() < 29)
      doc.replace(0, words.size(), words);
    else
      doc = words + '\n' + doc;
    text += doc;
  }
  return text;
}

}  // namespace

std::string help_text(const Tool& tool) {
  auto text = fmt::format("{}: {}\n\nUsage: {} {}\n\n", tool.name, tool.summary, tool.name, synopsis(tool));
  text += wrap(tool.description, 0);
  auto options = all_options(tool);
  if (auto own = option_list(options, false); !own.empty()) text += "\nOptions:\n" + own;
  text += "\nOptions that all tools share:\n" + option_list(options, true);
  text += "\nExamples:\n";
  for (auto& e : tool.examples) text += fmt::format("  {}\n", e.command) + wrap(e.meaning, 6);
  text += "\nOverhead: " + wrap(tool.overhead, 10).substr(10);
  text += fmt::format(
      "\nExit status: 0 fine, 1 failed, 2 usage, 3 this kernel or these rights cannot run it,\n"
      "4 data was lost under --strict.\n");
  return text;
}

}  // namespace coretap
