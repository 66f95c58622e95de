#include "docs/complete.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/sanitize.hpp"
#include "docs/commands.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

using Words = std::vector<std::string>;

/// A one-line description from the text of an option, a field or a tool.
std::string in_a_line(std::string_view text) { return printable(text.substr(0, text.find(';'))); }

/// The command line being typed: complete options and words, and what the last word is part of.
class Line {
 public:
  Line(std::vector<Option> options, const Words& words, std::size_t first)
      : options_(std::move(options)) {
    for (auto i = first; i + 1 < words.size(); i++) {
      if (words[i] == "--") {
        command_at = i + 1;
        return;
      }
      take(words[i]);
    }
    last(words.back());
  }

  std::optional<std::size_t> command_at;  ///< the first word after --
  const Option* value_of = nullptr;       ///< option whose value is (the end of) the last word
  std::string kept;                       ///< the part of the last word before that value
  std::string typed;                      ///< the value typed so far; else the word
  std::size_t words = 0;                  ///< number of complete words other than options
  Config given;                           ///< which options were given, without values

  const std::vector<Option>& options() const { return options_; }

 private:
  const Option* by_name(std::string_view name) const {
    const Option* found = nullptr;
    for (auto& o : options_)
      if (std::ranges::count(o.names(), name)) return &o;
    for (auto& o : options_) {
      if (!o.name.starts_with(name)) continue;
      if (found) return nullptr;
      found = &o;
    }
    return found;
  }
  void give(const Option& o) { given.give(o.name, "", o.adds_up); }

  /// Takes the options of a word; -> the one whose value begins at `at`, or in the next word.
  const Option* valued(std::string_view word, std::size_t& at) {
    if (word.starts_with("--")) {
      at = std::min(word.find('='), word.size() - 1) + 1;
      auto* o = by_name(word.substr(2, word.find('=') - 2));
      if (o) give(*o);
      return o && !o->metavar.empty() ? o : nullptr;
    }
    for (at = 1; at < word.size();) {
      auto o = std::ranges::find(options_, word[at++], &Option::letter);
      if (o == options_.end()) return nullptr;
      give(*o);
      if (!o->metavar.empty()) return &*o;
    }
    return nullptr;
  }

  void take(std::string_view word) {
    std::size_t at = 0;
    if (value_of)
      value_of = nullptr;
    else if (word.size() < 2 || word[0] != '-')
      words++;
    else if (auto* o = valued(word, at); at == word.size() && !word.ends_with('='))
      value_of = o;
  }

  void last(std::string_view word) {
    typed = word;
    bool has_value =
        word.starts_with("--") ? word.find('=') != word.npos : word.size() > 2 && word[0] == '-';
    if (value_of || !has_value) return;
    std::size_t at = 0;
    value_of = valued(word, at);
    if (!value_of) return;
    kept = word.substr(0, at);
    typed = word.substr(at);
  }

  std::vector<Option> options_;
};

void keep_matching(std::vector<Completion>& all, std::string_view typed) {
  std::erase_if(all, [&](auto& c) { return !c.word.starts_with(typed); });
}

/// Keys that --sort of this tool accepts with the options given so far.
std::vector<Completion> sort_keys(const Tool& tool, const Config& given) {
  std::vector<Completion> all;
  for (auto& f : chosen_report(tool, given)->fields())
    if (given.holds(f.only_with)) all.push_back({std::string(f.key), in_a_line(f.doc)});
  return all;
}

void add_values(Completions& to, Complete kind, std::string_view typed) {
  if (kind == Complete::file)
    to.shell = Completions::files;
  else if (kind == Complete::directory)
    to.shell = Completions::directories;
  else
    to.candidates = values(kind, typed);
}

void complete_value(Completions& to, const Line& line, const Tool* tool) {
  auto& option = *line.value_of;
  auto kept = line.kept, typed = line.typed;
  // In a list, values before the last comma are complete.
  std::set<std::string, std::less<>> settled;
  if (option.metavar.ends_with(",...")) {
    for (auto comma = typed.find(','); comma != typed.npos; comma = typed.find(',')) {
      settled.insert(typed.substr(0, comma));
      kept += typed.substr(0, comma + 1);
      typed.erase(0, comma + 1);
    }
  }
  if (option.words)
    to.candidates = option.words();
  else if (option.complete == Complete::sort_key && tool)
    to.candidates = sort_keys(*tool, line.given);
  else
    add_values(to, option.complete, typed);
  keep_matching(to.candidates, typed);
  std::erase_if(to.candidates, [&](auto& c) { return settled.contains(c.word); });
  for (auto& c : to.candidates) c.word.insert(0, kept);
}

using Exclusive = std::vector<std::pair<std::string_view, std::string_view>>;

void complete_option(Completions& to, const Line& line, const Exclusive& exclusive) {
  bool letters = line.typed == "-";
  for (auto& o : line.options()) {
    if (line.given.given(o.name) && !o.adds_up) continue;
    // Options that it depends on must be given first; a -- COMMAND and filter values are unknown
    // here.
    if (!line.given.holds(o.belongs_to)) continue;
    if (std::ranges::any_of(exclusive, [&](auto& pair) {
          return (pair.first == o.name && line.given.given(pair.second)) ||
                 (pair.second == o.name && line.given.given(pair.first));
        }))
      continue;
    auto doc = in_a_line(o.doc);
    if (letters && o.letter) to.candidates.push_back({fmt::format("-{}", o.letter), doc});
    to.candidates.push_back({fmt::format("--{}", o.name), doc});
  }
  if (letters) return;
  keep_matching(to.candidates, line.typed);
}

/// The positional argument with this index; nullptr: there is none.
const Positional* positional_at(const Tool& tool, std::size_t number) {
  auto& all = tool.positionals;
  if (number < all.size()) return &all[number];
  return !all.empty() && all.back().repeats() ? &all.back() : nullptr;
}

void complete_tool(Completions& to, const Tool& tool, const Words& words, std::size_t first) {
  Line line(all_options(tool), words, first);
  if (line.command_at) {
    to.shell = Completions::command;
    to.command_at = *line.command_at;
  } else if (line.value_of && line.value_of->complete == Complete::command) {
    to.shell = Completions::command;
    to.command_at = words.size() - 1;
  } else if (line.value_of) {
    complete_value(to, line, &tool);
  } else if (line.typed.starts_with('-')) {
    auto exclusive = tool.exclusive;
    exclusive.emplace_back("json", "csv");
    complete_option(to, line, exclusive);
  } else if (auto* positional = positional_at(tool, line.words)) {
    add_values(to, positional->complete, line.typed);
  }
}

void complete_command(Completions& to, const OwnCommand& command, const Words& words,
                      std::size_t first) {
  Line line(options_of(command), words, first);
  if (line.command_at) return;
  if (line.value_of) {
    complete_value(to, line, nullptr);
  } else if (line.typed.starts_with('-')) {
    complete_option(to, line, {});
  } else if (line.words < command.most) {
    if (command.words)
      to.candidates = command.words();
    else
      add_values(to, command.complete, line.typed);
    keep_matching(to.candidates, line.typed);
  }
}

/// False for words that a shell or a terminal would misinterpret.
bool fit(const Completion& c) {
  return !c.word.empty() && c.word.size() <= 4096 && printable(c.word) == c.word;
}

}  // namespace

Completions complete(const Registered* linked, const Words& words) {
  Completions all;
  if (words.empty()) return all;
  if (linked) {
    complete_tool(all, build(*linked), words, 0);
  } else if (words.size() == 1) {
    all.candidates = values(Complete::topic, words[0]);
    for (auto* option : {"--help", "--version"}) all.candidates.push_back({option});
    keep_matching(all.candidates, words[0]);
  } else if (auto* command = find_command(words[0])) {
    complete_command(all, *command, words, 1);
  } else if (auto call = called(words[0]); call.tool) {
    complete_tool(all, build(*call.tool), words, 1);
  }
  std::set<std::string> seen;
  std::erase_if(all.candidates, [&](auto& c) {
    return !fit(c) || seen.size() == kMostCandidates || !seen.insert(c.word).second;
  });
  return all;
}

std::string printed(const Completions& completion) {
  std::string text;
  for (auto& c : completion.candidates)
    text += c.doc.empty() ? c.word + '\n' : fmt::format("{}\t{}\n", c.word, printable(c.doc));
  if (completion.shell == Completions::command)
    return text + fmt::format(":command {}\n", completion.command_at);
  constexpr std::string_view kShell[] = {":nothing", ":files", ":directories"};
  return text + fmt::format("{}\n", kShell[completion.shell]);
}

int run_complete(const Registered* linked, const Words& words) {
  return print_text(printed(complete(linked, words)));
}

}  // namespace coretap
