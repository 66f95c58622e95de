// Compression of text and profiles.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

enum class Compression { fast, usual };

/// As a gzip file; empty: failed.
std::string gzip(std::string_view bytes, Compression how);
bool is_gzip(std::string_view bytes);
/// The contents of a gzip file; nothing: it is broken, or has more than `most` bytes.
std::optional<std::string> gunzip(std::string_view bytes, std::size_t most);

}  // namespace coretap
