// Numbers about the whole machine that tools put beside their own.
#pragma once
#include <cstdint>
#include <string_view>

namespace coretap {

/// A line of /proc/meminfo, in kB; 0 if there is none of that name.
std::uint64_t memory_kb(std::string_view name);

}  // namespace coretap
