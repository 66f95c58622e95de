// One row of an unwind table, as its readers pass it.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>

#include "lib/stack/unwind.h"

namespace coretap::unwind {

/// `rule` applies from `address` (an ELF virtual address) up to the next row.
using OnRow = std::function<void(std::uint64_t address, const unwind_rule& rule)>;

inline bool same_rule(const unwind_rule& left, const unwind_rule& right) {
  return std::memcmp(&left, &right, sizeof left) == 0;
}

}  // namespace coretap::unwind
