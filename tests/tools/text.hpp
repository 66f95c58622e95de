// Checks of text: lines, CSV, histograms, and whether it is safe for terminals.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "strings.hpp"

namespace coretap::tooltest {

bool contains(std::string_view text, std::string_view what);
std::string join(const Strings& words);  ///< by spaces

/// Lines of a text that ends with a newline.
Strings lines(const std::string& text);
/// The same without the last line if it may be incomplete.
Strings complete_lines(const std::string& text);
/// The words of the first line.
Strings words(const std::string& text);

/// No cursor movement: below 0x20 only newlines and tabs that indent a line, no DEL, valid UTF-8.
::testing::AssertionResult safe_for_terminals(const std::string& text);

/// The fields of one CSV line (RFC 4180; no newlines within).
Strings csv_fields(const std::string& line);
/// All rows have the header's fields and no raw control characters. Returns the number of rows.
std::size_t check_csv(const std::string& text);

/// The counts and bounds of one histogram are consistent.
void check_histogram(const Json& histogram, std::uint64_t unit_ns);

/// A workload's text as JSON shows it: bytes that are not valid UTF-8 are replaced.
std::string in_json(std::string text);

/// Decodes bytes that workloads print in hexadecimal, as they may not be valid UTF-8.
std::string unhex(const std::string& hex);

}  // namespace coretap::tooltest
