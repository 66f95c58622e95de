#include "docs/documents.hpp"

#include "docs/keys.hpp"
#include "metrics/text.hpp"

namespace coretap {

std::map<std::string, std::string> golden_documents() {
  return {{"keys.txt", keys_of_all()}, {"metrics.txt", metrics::series_of_all()}};
}

}  // namespace coretap
