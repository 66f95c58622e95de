// Conversion of text to numbers (the whole text must be a number), and splitting of text.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

std::optional<std::uint64_t> parse_unsigned(std::string_view text);
/// Hexadecimal, without 0x.
std::optional<std::uint64_t> parse_hexadecimal(std::string_view text);
/// Seconds: "2", "0.5", "100ms", "2m", "1h".
std::optional<double> parse_seconds(std::string_view text);
/// A count such as bytes, with a binary suffix: "64K", "8M", "1G".
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Removes and returns the text before `end`, or all of it; `end` itself is removed, too.
std::string_view take_until(std::string_view& rest, char end);
/// The parts between spaces, tabs and newlines.
std::vector<std::string_view> words_in(std::string_view text);
/// In ASCII.
std::string upper_case(std::string_view text);
/// Calls back for each part between commas; stops and returns false if one is refused or empty.
bool take_parts(std::string_view text, const std::function<bool(std::string_view)>& take);

}  // namespace coretap
