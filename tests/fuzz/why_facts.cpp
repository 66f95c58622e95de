#include <algorithm>

#include "fuzz.hpp"
#include "why/words.hpp"

using namespace coretap;

/// Recorded facts: a file of any user.
FUZZ(why_facts, bytes) {
  auto facts = why::from_lines(bytes, "a file");
  if (!facts) {
    MUST(!facts.error().hint.empty());
    return;
  }
  auto again = why::from_lines(why::to_lines(*facts), "a copy");
  MUST(again);
  MUST(again->parts.size() == facts->parts.size() &&
       again->counters.size() <= facts->counters.size());
  for (const bool all : {false, true}) {
    const auto answer = why::rank(*facts, {}, all);
    MUST(answer.findings.size() <= why::rules().size());
    for (auto text : {why::in_words(*facts, answer, 100), why::in_json(*facts, answer, 100)})
      for (std::string_view rest = text; !rest.empty();) {
        auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        MUST(fuzz::is_plain(line));
      }
  }
}
