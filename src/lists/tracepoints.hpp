// Output of tracepoints and USDT probes for `tplist`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/json.hpp"
#include "symbols/usdt.hpp"

namespace coretap {

/// True if a shell pattern (* ? [...]) matches "category:name", or the name alone if the pattern
/// has no colon. An empty pattern matches all.
bool is_wanted(std::string_view pattern, std::string_view full);

/// A line for each field of a format, except the fields common to all tracepoints: "    int fd;".
/// `places`: with offset and size in the record.
std::string field_lines(std::string_view format, bool places);
/// Adds the fields as an array of objects.
void add_fields(JsonLine& line, std::string_view format);

/// The locations of one probe in a file; `level`: number of -v options.
std::string usdt_lines(std::string_view path, const std::vector<symbols::UsdtProbe>& places,
                       int level);

}  // namespace coretap
