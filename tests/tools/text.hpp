// What tests ask of text: lines, CSV, histograms, and whether a terminal may see it.
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

/// Lines of a text of complete ones.
Strings lines(const std::string& text);
/// The same of a text whose last line may still be written: that one is left out.
Strings complete_lines(const std::string& text);
/// The words of the first line.
Strings words(const std::string& text);

/// Nothing that moves a cursor: below 0x20 only newlines and tabs that indent a line, no DEL, valid
/// UTF-8.
::testing::AssertionResult safe_for_terminals(const std::string& text);

/// The fields of one CSV line (RFC 4180; no newlines within).
Strings csv_fields(const std::string& line);
/// All rows have the fields of the header, and nothing raw is in them. Returns the number of rows.
std::size_t check_csv(const std::string& text);

/// The counts and bounds of one histogram are consistent.
void check_histogram(const Json& histogram, std::uint64_t unit_ns);

/// A text of a workload's as JSON shows it: the bytes of theirs that are not UTF-8 are replaced.
std::string in_json(std::string text);

/// Bytes as workloads write them where they may be no UTF-8.
std::string unhex(const std::string& hex);

}  // namespace coretap::tooltest
