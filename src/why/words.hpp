// The answer in words, and as lines of JSON.
#pragma once
#include <string>

#include "why/rank.hpp"

namespace coretap::why {

std::string in_words(const Facts& facts, const Answer& answer, std::size_t most);
std::string in_json(const Facts& facts, const Answer& answer, std::size_t most);
/// All rules with their conditions, states and commands.
std::string rules_in_words(const Thresholds& thresholds);

}  // namespace coretap::why
