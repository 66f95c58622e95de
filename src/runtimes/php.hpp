// PHP in an ELF file: the program, and modules of web servers. Untrusted input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/stack/runtime.h"

namespace coretap::runtimes {

constexpr std::string_view kPhpMark = "zend_get_executed_filename_ex";

/// Nothing if the file does not contain PHP. Builds with threads (ZTS), and those whose offsets are
/// not found, have php_layout::current 0. `base`: as for runtime_in().
std::optional<runtime_file> php_in(int fd, std::uint64_t base);

/// Offsets differ between versions, and the file says neither them nor its version in a symbol.
/// The code of zend_get_executed_filename_ex() has them: it goes from the running frame to the
/// first one with a file. Current 0: it is not as expected.
php_layout php_layout_in(std::string_view code);

}  // namespace coretap::runtimes
