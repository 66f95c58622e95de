#include "docs/search.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "docs/guide.hpp"

namespace coretap {

namespace {

/// These say little about the subject of a question.
constexpr std::string_view kCommon[] = {
    "a",   "all",  "an",   "and",  "any",   "are",   "at",   "be",   "been", "by",   "can", "did",
    "do",  "does", "find", "for",  "from",  "get",   "goes", "has",  "have", "how",  "i",   "in",
    "is",  "it",   "its",  "keep", "keeps", "list",  "many", "me",   "much", "my",   "not", "of",
    "on",  "or",   "our",  "see",  "show",  "so",    "that", "the",  "them", "this", "to",  "too",
    "was", "we",   "what", "when", "where", "which", "who",  "whom", "why",  "with", "your"};
constexpr double kCommonWeight = 0.15;

// Weights of the places where a word is found.
constexpr double kName = 3, kSummary = 2, kQuestion = 2, kExample = 1, kDescription = 0.6;
/// A word that only begins with the one that is sought, or a name that has it within.
constexpr double kPart = 0.7;
/// Each further text that has the word.
constexpr double kAgain = 0.15;
/// Words of a term that are neighbours, as in the term.
constexpr double kNeighbours = 1.2;
/// Words that a synonym means, if all are found: the table was made for them.
constexpr double kMeant = 1.25;
/// The best question of a tool, beside its other texts.
constexpr double kBestQuestion = 0.5;
/// A match that is worse than the best by more than this is left out.
constexpr double kWorst = 0.5;
constexpr std::size_t kMostMatches = 12;
/// Words of a term in the tables.
constexpr std::size_t kLongestTerm = 6;
/// A word that no text has. It is left out of a long query, and makes a short one fail.
constexpr double kUnknown = 0.7;
/// The part of what was sought that must be found.
constexpr double kLeastFound = 0.5;

/// Of a stem.
bool is_common(const std::string& word) {
  static const auto all = [] {
    std::set<std::string> stems;
    for (auto common : kCommon) stems.insert(stem(common));
    return stems;
  }();
  return all.contains(word);
}

std::vector<std::string> stems_in(std::string_view text) {
  auto all = plain_words(text);
  for (auto& word : all) word = stem(word);
  return all;
}

/// Texts, each with a weight, as the words in them.
class SearchedText {
 public:
  void add(std::string_view text, double weight) {
    std::set<std::string> once;
    std::string before;
    for (auto& word : stems_in(text)) {
      if (!before.empty()) pairs_.insert(fmt::format("{} {}", before, word));
      once.insert(before = word);
    }
    for (auto& word : once) {
      auto& place = words_[word];
      place.best = std::max(place.best, weight);
      place.all += weight;
    }
  }
  /// A name of words without blanks: "funclatency" has "latency".
  void add_name(std::string_view name) {
    add(name, kName);
    names_.emplace_back(name);
  }
  /// True if these words are neighbours somewhere.
  bool has_pair(const std::string& first, const std::string& second) const {
    return pairs_.contains(fmt::format("{} {}", first, second));
  }
  /// How well this word is found; 0: not at all.
  double found(const std::string& word) const {
    double best = 0;
    auto at = words_.lower_bound(word);
    if (at != words_.end() && at->first == word) best = at->second.value();
    if (word.size() < 3) return best;
    for (; at != words_.end() && at->first.starts_with(word); ++at)
      best = std::max(best, kPart * at->second.value());
    for (auto& name : names_)
      if (name.find(word) != name.npos) best = std::max(best, kPart * kName);
    return best;
  }

 private:
  struct Place {
    double best = 0, all = 0;
    double value() const { return best + kAgain * (all - best); }
  };
  std::map<std::string, Place, std::less<>> words_;
  std::set<std::string> pairs_;
  std::vector<std::string_view> names_;
};

/// Something that can be found, with its questions.
struct Entry {
  std::string_view name, summary;
  SearchedText text;
  std::vector<std::pair<Question, SearchedText>> questions;
};

Entry entry_of(const Tool& tool) {
  Entry entry{tool.name, tool.summary, {}, {}};
  auto& text = entry.text;
  text.add_name(tool.name);
  for (auto& other : tool.other_names) text.add_name(other.name);
  text.add(tool.summary, kSummary);
  text.add(tool.subsystem, kExample);
  text.add(tool.description, kDescription);
  for (auto& example : tool.examples) text.add(example.meaning, kExample);
  for (auto& question : tool.questions) {
    text.add(question.question, kQuestion);
    auto& asked = entry.questions.emplace_back(question, SearchedText()).second;
    asked.add(question.question, kQuestion);
    asked.add(question.command, kExample);
    asked.add(tool.summary, kExample);
  }
  return entry;
}

/// One part of the query: a word, or a term with synonyms. It is found if one of these is.
struct Sought {
  std::vector<std::vector<std::string>> any_of;
  double weight = 0;
};

class Query {
 public:
  Query(const std::vector<Entry>& entries, const std::vector<std::string>& words)
      : entries_(entries) {
    std::vector<std::string> said;
    for (auto& word : words)
      for (auto& part : plain_words(word)) said.push_back(part);
    for (auto& word : said) stems_.push_back(stem(word));
    std::vector<bool> taken(said.size());
    // Longer terms first: "page cache" is not "page".
    for (auto length = std::min(stems_.size(), kLongestTerm); length > 0; length--)
      for (std::size_t at = 0; at + length <= stems_.size(); at++)
        if (!std::ranges::count(taken.begin() + at, taken.begin() + at + length, true))
          for (auto& row : synonyms())
            if (has_term(row.said, at, length)) {
              std::fill_n(taken.begin() + at, length, true);
              add_term(at, length, row.meant);
            }
    for (std::size_t i = 0; i < stems_.size(); i++) {
      if (taken[i]) continue;
      const bool common = is_common(stems_[i]);
      const bool known = in_entries(stems_[i]) > 0;
      sought_.push_back(
          {{{stems_[i]}}, !known ? kUnknown : weight(stems_[i]) * (common ? kCommonWeight : 1)});
      if (!known && !common) unknown.push_back(said[i]);
    }
    for (auto& part : sought_) all_ += part.weight;
  }

  std::vector<std::string> unknown;

  /// Each part found counts with its weight and that of the place.
  double score(const SearchedText& text) const {
    double sum = 0;
    for (auto& part : sought_) sum += part.weight * found(part, text);
    return sum;
  }
  /// True if enough of the query is in this text.
  bool is_found(const SearchedText& text) const {
    double sum = 0;
    for (auto& part : sought_)
      if (found(part, text) > 0) sum += part.weight;
    return all_ > 0 && sum >= kLeastFound * all_;
  }
  /// True if one of these terms is part of the query.
  bool has(std::string_view terms) const {
    for (std::size_t length = 1; length <= std::min(stems_.size(), kLongestTerm); length++)
      for (std::size_t at = 0; at + length <= stems_.size(); at++)
        if (has_term(terms, at, length)) return true;
    return false;
  }

 private:
  /// True if one of these terms is the part of the query.
  bool has_term(std::string_view terms, std::size_t at, std::size_t length) const {
    while (!terms.empty())
      if (auto term = stems_in(take_until(terms, ',')); term.size() == length)
        if (std::equal(term.begin(), term.end(), stems_.begin() + static_cast<long>(at)))
          return true;
    return false;
  }

  void add_term(std::size_t at, std::size_t length, std::string_view meant) {
    Sought part{
        {{stems_.begin() + static_cast<long>(at), stems_.begin() + static_cast<long>(at + length)},
         stems_in(meant)}};
    for (auto& words : part.any_of) part.weight = std::max(part.weight, weight(words));
    sought_.push_back(std::move(part));
  }

  long in_entries(const std::string& word) const {
    return std::ranges::count_if(entries_, [&](auto& e) { return e.text.found(word) > 0; });
  }

  /// A word in few entries has more weight than one in many.
  double weight(const std::string& word) const {
    auto [known, fresh] = weights_.try_emplace(word);
    if (!fresh) return known->second;
    return known->second = std::log(1 + static_cast<double>(entries_.size()) /
                                            static_cast<double>(std::max(1L, in_entries(word))));
  }
  double weight(const std::vector<std::string>& words) const {
    double sum = 0;
    for (auto& word : words) sum += weight(word) * (is_common(word) ? kCommonWeight : 1);
    return sum;
  }

  double found(const Sought& part, const SearchedText& text) const {
    double best = 0;
    for (auto& words : part.any_of) {
      double sum = 0, all = weight(words);
      const bool meant = &words != &part.any_of.front();
      bool lacks = false;
      for (auto& word : words) {
        auto place = text.found(word);
        if (place == 0 && !is_common(word)) lacks = true;
        sum += place * weight(word) * (is_common(word) ? kCommonWeight : 1);
      }
      if (lacks || all == 0) continue;
      double value = sum / all * (meant ? kMeant : 1);
      for (std::size_t i = 1; i < words.size(); i++)
        if (text.has_pair(words[i - 1], words[i])) value *= kNeighbours;
      best = std::max(best, value);
    }
    return best;
  }

  const std::vector<Entry>& entries_;
  std::vector<std::string> stems_;
  std::vector<Sought> sought_;
  double all_ = 0;
  mutable std::map<std::string, double> weights_;
};

void keep_best(std::vector<Match>& all) {
  std::ranges::stable_sort(all, std::ranges::greater(), &Match::score);
  if (all.empty()) return;
  std::erase_if(all, [least = kWorst * all[0].score](auto& m) { return m.score < least; });
  if (all.size() > kMostMatches) all.resize(kMostMatches);
}

}  // namespace

std::vector<std::string> plain_words(std::string_view text) {
  std::vector<std::string> all(1);
  for (std::size_t i = 0; i < text.size(); i++) {
    auto c = static_cast<unsigned char>(text[i]);
    if (isalnum(c))
      all.back() += static_cast<char>(tolower(c));
    else if (c == '/' && all.back() == "i")
      continue;  // I/O
    else if (!all.back().empty())
      all.emplace_back();
  }
  if (all.back().empty()) all.pop_back();
  return all;
}

std::string stem(std::string_view word) {
  std::string w(word);
  auto ends = [&](std::string_view ending, std::size_t least = 3) {
    return w.size() >= ending.size() + least && w.ends_with(ending);
  };
  if (ends("ies"))
    w.replace(w.size() - 3, 3, "y");
  else if (ends("ses") || ends("xes") || ends("ches") || ends("shes"))
    w.resize(w.size() - 2);
  else if (ends("s") && !ends("ss", 1) && !ends("us", 1) && !ends("is", 1))
    w.pop_back();
  if (ends("ing") || ends("ion", 4) || ends("ure", 4))
    w.resize(w.size() - 3);
  else if (ends("ed"))
    w.resize(w.size() - 2);
  if (w.size() > 3 && w[w.size() - 1] == w[w.size() - 2]) w.pop_back();
  if (ends("e")) w.pop_back();
  return w;
}

Matches search(const std::vector<std::string>& words, const std::vector<Described>& commands) {
  std::vector<Entry> entries;
  for (auto& registered : registry()) entries.push_back(entry_of(build(registered)));
  const Query query(entries, words);
  Matches all;
  for (auto& entry : entries) {
    if (!query.is_found(entry.text)) continue;
    double best = 0;
    for (auto& [question, text] : entry.questions) best = std::max(best, query.score(text));
    auto score = query.score(entry.text) + kBestQuestion * best;
    all.tools.push_back({score, entry.name, std::string(entry.summary), {}});
    for (auto& [question, text] : entry.questions)
      if (auto own = query.score(text); own == best || query.is_found(text))
        all.questions.push_back({score + own, entry.name, std::string(question.question),
                                 std::string(question.command)});
  }
  all.unknown = query.unknown;
  auto forget_known = [&](const SearchedText& text) {
    std::erase_if(all.unknown, [&](auto& word) { return text.found(stem(word)) > 0; });
  };
  for (auto& command : commands) {
    SearchedText text;
    text.add(command.name, kName);
    text.add(command.summary, kSummary);
    text.add(command.description, kDescription);
    forget_known(text);
    if (query.is_found(text))
      all.commands.push_back({query.score(text), command.name, std::string(command.summary), {}});
  }
  for (auto& page : guide_pages()) {
    SearchedText text;
    text.add(page.name, kName);
    text.add(page.summary, kSummary);
    text.add(page.about, kDescription);
    for (auto& part : page.parts) {
      text.add(part.title, kSummary);
      text.add(part.about, kDescription);
      for (auto& step : part.steps) text.add(step.question, kDescription);
    }
    forget_known(text);
    if (query.is_found(text))
      all.pages.push_back({query.score(text), page.name, std::string(page.summary), {}});
  }
  for (auto* list : {&all.questions, &all.tools, &all.commands, &all.pages}) keep_best(*list);
  all.commands_first =
      !all.commands.empty() && (all.tools.empty() || all.commands[0].score > all.tools[0].score);
  if (!all.tools.empty())
    std::stable_partition(all.questions.begin(), all.questions.end(),
                          [&](auto& q) { return q.name == all.tools[0].name; });
  for (auto& row : not_here())
    if (query.has(row.said)) all.elsewhere.push_back(&row);
  return all;
}

}  // namespace coretap
