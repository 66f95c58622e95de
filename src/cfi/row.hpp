// One row of an unwind table as its readers hand it on.
#pragma once
#include <cstdint>
#include <functional>

#include "lib/unwind.h"

namespace coretap::unwind {

/// From `address` (an ELF virtual address) on, up to the next row, `rule` holds.
using OnRow = std::function<void(std::uint64_t address, const unwind_rule& rule)>;

}  // namespace coretap::unwind
