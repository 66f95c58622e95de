// Data that a recording of another version of coretap lacks.
#pragma once
#include <cstddef>
#include <string>

namespace coretap {

/// Bytes of a record, or of the keys or values of a map: they are 0.
struct Lacking {
  enum Of { record, key, value } of = record;
  std::string map = {};  ///< its name, unless it is a record
  std::string member;    ///< "owner.pid"
  std::string why;       ///< "not in this recording"
  std::size_t at = 0, bytes = 0;
};

}  // namespace coretap
