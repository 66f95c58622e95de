#include "places.hpp"

#include <fstream>
#include <sstream>
#include <utility>

namespace coretap::places {

std::string source_dir() { return CORETAP_SOURCE_DIR; }

std::string test_data() { return source_dir() + "/tests/unit/data"; }

// Without iterators: byte by byte they take minutes in an unoptimised build.
std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

std::string data_text(const std::string& file) { return file_text(test_data() + "/" + file); }

}  // namespace coretap::places
