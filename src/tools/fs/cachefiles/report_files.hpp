// The report of cachefiles: files in the page cache that processes have open or mapped, and the
// rest.
#pragma once
#include <memory>
#include <vector>

#include "coretap/fields.hpp"

namespace coretap {

class ReportKind;

struct CacheFilesReport {
  std::vector<Field> fields;  ///< of a CacheRow
  bool by_directory = false;
  bool below = false;  ///< of files below the directory of --below, open or not
};

std::shared_ptr<const ReportKind> make_kind(CacheFilesReport report);

}  // namespace coretap
