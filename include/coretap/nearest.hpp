// Suggestions for misspelled words.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// The known word that begins with this one, if there is exactly one; else the first of those with
/// the smallest distance, at most two letters (missing, added, wrong or swapped; one in a word of
/// up to four). Empty: none.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

/// "did you mean 'cycles'?"; empty: no similar word.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

/// Fails if it is none of the keys that the option takes.
Result<void> check_key(std::string_view option, std::string_view key,
                       const std::vector<std::string_view>& known);

}  // namespace coretap
