// What tools about block devices share.
#pragma once
#include <cstdint>

#include "coretap/fields.hpp"

namespace coretap {

/// Why an I/O failed, for as::error; null: it did not. Below 0 an errno, above 0 a blk_status_t.
Value block_error(std::int32_t status);

}  // namespace coretap
