// Functions, files and lines of Go programs without debug information, from the table that Go's
// runtime has for its own stack traces (.gopclntab).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "symbols/source_lines.hpp"

namespace coretap::symbols {

/// The same as SourceLines::find(); empty: the file has no such table of a known version.
std::vector<SourcePlace> go_lines(int fd, std::span<const std::uint64_t> addresses);

}  // namespace coretap::symbols
