// Disks as /sys/block shows them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

/// Device number as the kernel keeps it: major << 20 | minor.
Result<std::uint32_t> find_disk(std::string_view name_or_numbers);

/// An error where the driver of this disk handles bios, and no requests: it names the disks below,
/// whose requests are those of this one.
Result<void> check_requests(std::uint32_t device);

/// Name of a device number now; disks may come and go while a tool runs. "8:16" if there is none.
std::string disk_name(std::uint32_t device);

/// How many there are now.
std::uint64_t disks();

/// How many requests all disks' queues can hold at once.
std::uint64_t block_requests();

}  // namespace coretap
