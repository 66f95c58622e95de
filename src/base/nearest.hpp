// Words that were meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

/// The known word that this one is the beginning of, where there is exactly one; else the first of
/// those that differ least, by at most two letters (missing, added, wrong or swapped; one in a word
/// of up to four). Empty: none.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

/// "did you mean 'cycles'?"; empty: nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace coretap
