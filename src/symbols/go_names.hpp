// Names of functions that stripped Go programs keep in the table that Go's runtime has for its own
// stack traces (.gopclntab).
#pragma once
#include <cstdint>
#include <vector>

namespace coretap::symbols {

struct GoNames {
  struct Function {
    std::uint64_t start, size;
    std::uint32_t name;  ///< in `names`, which end with a NUL
  };
  std::vector<std::uint8_t> names;
  std::vector<Function> functions;  ///< by address
};
/// Empty: not a Go program, or it is not certain where the code is.
GoNames go_names(int fd);

}  // namespace coretap::symbols
