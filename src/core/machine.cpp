#include "core/machine.hpp"

#include "core/files.hpp"

namespace coretap {

std::uint64_t memory_kb(std::string_view name) {
  return static_cast<std::uint64_t>(read_keyed("/proc/meminfo", name).value_or(0));
}

}  // namespace coretap
