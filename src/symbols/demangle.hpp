// Demangles names, in bounded time and memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace coretap::symbols {

/// True if it looks like a mangled name of C++ (Itanium ABI) or Rust.
bool is_mangled(std::string_view name);

/// Demangles C++ (Itanium ABI), Rust, and legacy Rust (without its hash). All others, names above 4
/// KiB, and names that would exceed 16 KiB are returned unchanged.
std::string demangle(std::string_view name);

/// Offset of the parameters in a function's demangled name: its '(', or the end.
std::size_t parameters_at(std::string_view demangled);

/// Possible names in source code: first the whole name without the result type, then with and
/// without that type, parameters, template arguments, unnamed namespaces.
std::vector<std::string> names_in_source(std::string_view mangled);

/// A part that symbols of functions with this source name must contain, or a pattern with *; other
/// symbols can be skipped. Empty: no part is certain.
std::string_view part_in_symbol(std::string_view written);

}  // namespace coretap::symbols
