// Compression of text and profiles.
#pragma once
#include <string>
#include <string_view>

namespace coretap {

enum class Compression { fast, usual };

/// As a gzip file; empty: failed.
std::string gzip(std::string_view bytes, Compression how);

}  // namespace coretap
