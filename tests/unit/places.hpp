// Where this checkout lies; its absolute path is compiled into one file only.
#pragma once
#include <string>

namespace coretap::places {

std::string source_dir();
std::string test_data();  ///< tests/unit/data

/// The text of a file in tests/unit/data; empty if there is none.
std::string data_text(const std::string& file);

}  // namespace coretap::places
