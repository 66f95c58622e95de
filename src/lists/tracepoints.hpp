// How `tplist` shows a tracepoint and a USDT probe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "symbols/usdt.hpp"
#include "text/json.hpp"

namespace coretap {

/// Does a shell's pattern (* ? [...]) match "category:name", or the name alone where the pattern
/// has no colon? An empty pattern matches all.
bool is_wanted(std::string_view pattern, std::string_view full);

/// A line for each field of a format, without those that all tracepoints have: "    int fd;".
/// `places`: with its offset and size in the record.
std::string field_lines(std::string_view format, bool places);
/// An array of objects.
void add_fields(JsonLine& line, std::string_view format);

/// The places of one probe in a file; `level`: of -v.
std::string usdt_lines(std::string_view path, const std::vector<symbols::UsdtProbe>& places,
                       int level);

}  // namespace coretap
