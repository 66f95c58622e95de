// Conversion of text to numbers (the whole text must be a number), and splitting of text.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace coretap {

std::optional<std::uint64_t> parse_unsigned(std::string_view text);
/// Hexadecimal, without 0x.
std::optional<std::uint64_t> parse_hexadecimal(std::string_view text);
/// Seconds: "2", "0.5", "100ms", "2m", "1h".
std::optional<double> parse_seconds(std::string_view text);
/// A count such as bytes, with a binary suffix: "64K", "8M", "1G".
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Removes the text before `end`, and `end`, from `rest`; -> that text, or all if there is no
/// `end`.
std::string_view take_until(std::string_view& rest, char end);
/// Calls back for each part between commas until false is returned. False: it was, or a part is
/// empty.
bool take_parts(std::string_view text, const std::function<bool(std::string_view)>& take);

}  // namespace coretap
