// The line of a place in CPython's code, from the tables in its code objects. Untrusted input.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace coretap::runtimes {

/// `minor`: 3.9's table is PEP 3's co_lnotab, 3.10's PEP 626's co_linetable, from 3.11 on it is
/// PEP 657's (Objects/locations.md in its sources). `first`: the function's first line. `place`: in
/// units of two bytes. Nothing if no line is known for the place.
std::optional<std::uint32_t> line_at(unsigned minor, std::string_view table, std::uint32_t first,
                                     std::uint32_t place);

/// False for code that the interpreter itself has made, which is no function of the program.
bool has_lines(unsigned minor, std::string_view table);

}  // namespace coretap::runtimes
