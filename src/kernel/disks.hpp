// Disks as /sys/block shows them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

/// Device number as the kernel keeps it: major << 20 | minor.
Result<std::uint32_t> find_disk(std::string_view name_or_numbers);

/// The disk whose requests are this one's: itself, or the only path of an NVMe disk that may have
/// several. An error where the driver handles bios, and no requests: it names the disks below.
Result<std::uint32_t> disk_of_requests(std::uint32_t device);

/// Name of a device number now; disks may come and go while a tool runs. "8:16" if there is none.
std::string disk_name(std::uint32_t device);

/// How many there are now.
std::uint64_t disks();

/// How many requests all disks' queues can hold at once.
std::uint64_t block_requests();

}  // namespace coretap
