// Text to numbers; the whole text must be one. And text in parts.
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
/// Bytes or another count, with a binary suffix: "64K", "8M", "1G".
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Takes what comes before `end`, and `end` itself, off the text; all of it where there is none.
std::string_view take_until(std::string_view& rest, char end);
/// Calls back for each part between commas until one is refused; false: one was, or is empty.
bool take_parts(std::string_view text, const std::function<bool(std::string_view)>& take);

}  // namespace coretap
