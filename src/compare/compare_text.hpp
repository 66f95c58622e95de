// Comparisons as text, JSON and CSV; and conditions on them. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/comparison.hpp"
#include "coretap/result.hpp"

namespace coretap::compare {

std::string in_text(const Comparison& c);
/// A line with the facts, one for each line of the comparison, one for each contribution.
std::string in_json(const Comparison& c);
std::string in_csv(const Comparison& c);

std::string in_text(const Plan& p);
std::string in_json(const Plan& p);

/// WHAT [of KEY=VALUE] < or > [+-]N[%|ns|us|ms|s|/s]
struct Condition {
  std::string text;  ///< as given
  std::string what, key;
  bool above = true;
  enum Of { parts, amount } of = parts;  ///< of the change: relative, or in the value's unit
  double limit = 0;
};
Result<Condition> condition_in(std::string_view text);
/// The line that it needs.
inline Wanted wanted(const Condition& c) { return {c.what, c.key}; }

struct Answer {
  enum { holds, not_so, undecided } is = undecided;
  std::string text;  ///< "p99 > +10%: holds (+27.3 %, at least +14.8 %)"
};
Answer answer(const Condition& condition, const Comparison& c);
std::string in_json(const Condition& condition, const Answer& answer);

/// "2.31 ms", "4.1 kB", "1,944": three digits.
std::string amount(double value, Unit unit);
/// "+5.2 %"; of a part of the value. Tenfold and more: "x 12.3".
std::string percent(double part);

}  // namespace coretap::compare
