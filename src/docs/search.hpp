// The search of `coretap find`: in the tools' own texts, the commands, the pages of the guide, and
// two tables of words.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// Terms of users, separated by commas, for what the tools' texts call otherwise.
struct Synonym {
  std::string_view said;
  std::string_view meant;  ///< words that are in the texts
};
std::span<const Synonym> synonyms();

/// Terms for what no tool here shows, and the program that does.
struct NotHere {
  std::string_view said;
  std::string_view command;  ///< of another suite
  std::string_view why;      ///< a sentence
};
std::span<const NotHere> not_here();

/// A result of the search, and how well it matches.
struct Match {
  double score = 0;
  std::string_view name;  ///< of the tool, command or page
  std::string text;       ///< the question or summary
  std::string command;    ///< that answers the question, without coretap
};

/// The results, each list with the best first. The best tool's best question is the first one.
struct Matches {
  std::vector<Match> questions, tools, commands, pages;
  bool commands_first = false;  ///< the best command matches better than the best tool
  std::vector<const NotHere*> elsewhere;
  std::vector<std::string> unknown;  ///< words that are in no tool's texts and no table

  bool empty() const {
    return questions.empty() && tools.empty() && commands.empty() && pages.empty() &&
           elsewhere.empty();
  }
};
/// One of coretap's own commands.
struct Described {
  std::string_view name, summary, description;
};
Matches search(const std::vector<std::string>& words, const std::vector<Described>& commands);
/// The same, with all commands.
Matches search(const std::vector<std::string>& words);

/// `coretap find`.
int run_find(const Config& config, const std::vector<std::string>& words);

/// A word without its ending: "latencies" and "latency" are the same.
std::string stem(std::string_view word);
/// The words of a text in lower case; "I/O" is one.
std::vector<std::string> plain_words(std::string_view text);

}  // namespace coretap
