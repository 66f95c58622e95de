// Helpers for the files of shared options.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/parse.hpp"

namespace coretap {

/// Parses seconds of an option ("--interval") or a positional argument ("INTERVAL").
Result<double> take_seconds(std::string_view of, std::string_view text);
/// A number from `least` to `most`.
Result<std::uint64_t> take_number(
    std::string_view of, std::string_view text, std::uint64_t least, std::uint64_t most,
    std::optional<std::uint64_t> (*parse)(std::string_view) = parse_unsigned);

/// For each part between commas; ends at the first error.
template <class Take>
Result<void> each_word(std::string_view text, const Take& take) {
  while (true) {
    auto word = text.substr(0, text.find(','));
    if (auto r = take(word); !r) return r;
    if (word.size() == text.size()) return {};
    text.remove_prefix(word.size() + 1);
  }
}

/// Stores what was parsed, unless it is an error.
template <class T, class To>
Result<void> store(const Result<T>& from, To& to) {
  if (!from) return from.error();
  to = static_cast<To>(*from);
  return {};
}

/// Marks an option as the same in every tool that has it.
Option same_everywhere(Option option);
/// free_text that is the same in every tool.
Option text(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
            std::string_view needs, std::function<std::string&(Config&)> place = {},
            Complete complete = Complete::nothing);
/// A number, optionally with a binary suffix, from 1 to `most`; stored where `place` says.
Option limit(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::uint64_t most, std::uint64_t* (*place)(Config&));

namespace shared {
/// Every tool with output() has these.
std::vector<Option> output_files();
/// Every tool that prints events has it.
Option max_rate();
Option record();
Option perfetto();
/// Every tool that sums up stacks has it.
Option lines();
}  // namespace shared

}  // namespace coretap
