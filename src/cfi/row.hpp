// One row of an unwind table, as its readers pass it.
#pragma once
#include <cstdint>
#include <functional>

#include "lib/stack/unwind.h"

namespace coretap::unwind {

/// `rule` applies from `address` (an ELF virtual address) up to the next row.
using OnRow = std::function<void(std::uint64_t address, const unwind_rule& rule)>;

}  // namespace coretap::unwind
