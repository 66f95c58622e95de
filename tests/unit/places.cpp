#include "places.hpp"

#include <fstream>
#include <sstream>
#include <utility>

namespace coretap::places {

std::string source_dir() { return CORETAP_SOURCE_DIR; }

std::string test_data() { return source_dir() + "/tests/unit/data"; }

// Not by iterators: a byte at a time they take minutes in a build that is not optimised.
std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

std::string data_text(const std::string& file) { return file_text(test_data() + "/" + file); }

}  // namespace coretap::places
