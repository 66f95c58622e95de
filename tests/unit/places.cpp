#include "places.hpp"

#include <fstream>
#include <iterator>

namespace coretap::places {

std::string source_dir() { return CORETAP_SOURCE_DIR; }

std::string test_data() { return source_dir() + "/tests/unit/data"; }

std::string data_text(const std::string& file) {
  std::ifstream in(test_data() + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace coretap::places
