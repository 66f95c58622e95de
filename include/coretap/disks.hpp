// Disks, from /sys/block, and errors of their requests.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "coretap/fields.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// Device number in the kernel's format: major << 20 | minor.
Result<std::uint32_t> find_disk(std::string_view name_or_numbers);

/// The disk whose queue handles this disk's requests: itself, or the only path of an NVMe multipath
/// disk. An error if the driver handles bios instead of requests; it names the disks below.
Result<std::uint32_t> disk_of_requests(std::uint32_t device);

/// Current name of a device number; disks may come and go while a tool runs. "8:16" if there is
/// none.
std::string disk_name(std::uint32_t device);

/// Current number of disks.
std::uint64_t disks();

/// Number of requests that the queues of all disks can hold at once.
std::uint64_t block_requests();

/// Reason for a failed I/O, for as::error; null: no error. Negative: errno, positive: blk_status_t.
Value block_error(std::int32_t status);

}  // namespace coretap
