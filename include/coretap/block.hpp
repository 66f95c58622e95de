// Shared by tools for block devices.
#pragma once
#include <cstdint>

#include "coretap/fields.hpp"

namespace coretap {

/// Reason for a failed I/O, for as::error; null: no error. Negative: errno, positive: blk_status_t.
Value block_error(std::int32_t status);

}  // namespace coretap
