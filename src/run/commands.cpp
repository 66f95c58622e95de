#include "run/commands.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "text/errors.hpp"

#include "base/nearest.hpp"
#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "coretap/version.hpp"
#include "program/session.hpp"
#include "run/tool_links.hpp"
#include "text/json.hpp"

namespace coretap {

namespace {

int list(const std::vector<std::string>& arguments) {
  bool json = arguments.size() == 1 && arguments[0] == "--json";
  if (!arguments.empty() && !json) {
    print_error("coretap",
                {fmt::format("list: unexpected '{}'", arguments[0]), {}, "coretap list [--json]"});
    return kUsage;
  }
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

std::string usage() {
  return "coretap: CO-RE BPF tracers for Linux in one executable\n\n"
         "Usage: coretap TOOL [OPTIONS]    run a tool (TOOL alone does the same where it is linked)\n"
         "       coretap list [--json]     all tools\n"
         "       coretap help TOOL         what a tool does and its options\n"
         "       coretap find WORD...      questions, tools and options that have these words\n"
         "       coretap doctor [--json]   what this kernel and these rights can run\n"
         "       coretap link [DIRECTORY]  make the tools' own names, as links\n"
         "       coretap --version\n";
}

int help(const std::vector<std::string>& arguments) {
  Sink out;
  if (arguments.empty()) {
    out.write(usage());
  } else if (auto* entry = find_tool(arguments[0])) {
    out.write(help_text(build(*entry)));
  } else {
    print_error("coretap", no_such_tool(arguments[0]));
    return kUsage;
  }
  return end_of(out);
}

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

int find(const std::vector<std::string>& words) {
  auto usable = [](auto& word) { return !word.empty() && word[0] != '-'; };
  if (words.empty() || !std::all_of(words.begin(), words.end(), usable)) {
    print_error("coretap", {"find: expected words to look for",
                            {},
                            "coretap find WORD...; coretap list shows all tools"});
    return kUsage;
  }
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

}  // namespace

Error no_such_tool(std::string_view name) {
  std::vector<std::string_view> known = {"list", "help", "find", "doctor", "link"};
  for (auto& entry : registry()) known.push_back(entry.name);
  auto meant = did_you_mean(name, known);
  return {fmt::format("there is no tool '{}'", name),
          {},
          fmt::format("{}{}coretap list shows them all", meant, meant.empty() ? "" : " "),
          kUsage};
}

int usage_without_tool() {
  fputs(usage().c_str(), stderr);
  return kUsage;
}

std::optional<int> run_command(const std::vector<std::string>& arguments) {
  auto& command = arguments[0];
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (command == "list") return list(rest);
  if (command == "help" || command == "--help" || command == "-h") return help(rest);
  if (command == "find") return find(rest);
  if (command == "doctor") return doctor(rest);
  if (command == "link") return link_command(rest);
  if (command == "--version" || command == "-V") {
    Sink out;
    out.line(fmt::format("coretap {}", kVersion));
    return end_of(out);
  }
  return std::nullopt;
}

}  // namespace coretap
