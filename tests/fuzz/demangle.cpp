#include "symbols/demangle.hpp"

#include "fuzz.hpp"

FUZZ(demangle, bytes) {
  const auto name = coretap::symbols::demangle(bytes);
  MUST(name.size() <= 16 << 10 || name == bytes);
  MUST(bytes.empty() || !name.empty());
}
