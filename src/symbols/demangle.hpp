// Mangled names back to what the author wrote, in bounded time and memory.
#pragma once
#include <string>
#include <string_view>

namespace coretap::symbols {

/// Looks like a name of C++ (Itanium ABI) or Rust.
bool is_mangled(std::string_view name);

/// C++ (Itanium ABI), Rust, and legacy Rust (without its hash). All others, names above 4 KiB, and
/// names that would become longer than 16 KiB are returned as they are.
std::string demangle(std::string_view name);

/// Where the parameters of a function begin in its demangled name: at their '(', or at the end.
std::size_t parameters_at(std::string_view demangled);

}  // namespace coretap::symbols
