// Mangled names back to what the author wrote, in bounded time and memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace coretap::symbols {

/// Looks like a name of C++ (Itanium ABI) or Rust.
bool is_mangled(std::string_view name);

/// C++ (Itanium ABI), Rust, and legacy Rust (without its hash). All others, names above 4 KiB, and
/// names that would become longer than 16 KiB are returned as they are.
std::string demangle(std::string_view name);

/// Where the parameters of a function begin in its demangled name: at their '(', or at the end.
std::size_t parameters_at(std::string_view demangled);

/// What the source may call it: first all of its name but for the type of the result, then with
/// and without that type, parameters, template arguments, unnamed namespaces.
std::vector<std::string> names_in_source(std::string_view mangled);

/// A part that is the same in the symbol of what the source calls so, or a pattern with *: others
/// need not be looked at. Empty: none is sure.
std::string_view part_in_symbol(std::string_view written);

}  // namespace coretap::symbols
