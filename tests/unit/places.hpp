// The directory of this checkout; only one file has its absolute path compiled in.
#pragma once
#include <string>

namespace coretap::places {

std::string source_dir();
std::string test_data();  ///< tests/unit/data

/// The bytes of a file; empty if it cannot be read.
std::string file_text(const std::string& path);
/// The text of a file in tests/unit/data; empty if there is none.
std::string data_text(const std::string& file);

}  // namespace coretap::places
