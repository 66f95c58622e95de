#include <fmt/format.h>

#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "fuzz.hpp"
#include "tools/syscall/traceloop/report_calls.hpp"

using namespace coretap;

/// The first byte chooses the tool. Words end at a newline; in a word that starts with a byte above
/// 127, the text up to there is an option with that number.
FUZZ(command_line, bytes) {
  fuzz::Input input(bytes);
  const auto& entry = registry()[input.number<std::uint8_t>() % registry().size()];
  static std::map<std::string_view, Tool> tools;
  auto known = tools.find(entry.name);
  if (known == tools.end()) known = tools.emplace(entry.name, build(entry)).first;
  const auto& tool = known->second;
  const auto options = all_options(tool);

  std::vector<std::string> words;
  for (auto rest = input.rest(); !rest.empty();) {
    auto word = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.find('\0') != word.npos) return;  // no argument contains NUL
    const auto number = static_cast<std::uint8_t>(word.empty() ? 0 : word.front()) & 0x7fU;
    if (!word.empty() && (word.front() & 0x80) != 0)
      words.push_back(fmt::format("--{}{}", options[number % options.size()].name, word.substr(1)));
    else
      words.emplace_back(word);
  }
  const auto parsed = parse_command_line(tool, words);
  if (!parsed) {
    MUST(!parsed.error().what.empty());
    MUST(parsed.error().status == kUsage || parsed.error().status == kUnsupported);
    return;
  }
  const auto& config = parsed->config;
  MUST(config.schedule.interval >= 0 && config.schedule.duration >= 0);
  if (tool.name == "traceloop") MUST(config.own<CallSettings>().cgroups.size() <= words.size());
  MUST(config.command.size() <= bytes.size());  // --command is split into words
  chosen_report(tool, config);
}
