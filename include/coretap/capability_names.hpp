// Names and numbers of capabilities (capabilities(7)).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

/// Name of any capability; the number itself if it is newer than this program.
std::string capability_name(std::uint64_t number);
/// Accepts "CAP_KILL", "kill", "5"; nullopt if this kernel has no such capability.
std::optional<std::uint64_t> capability_number(std::string_view text);
/// The highest capability number of this kernel.
std::uint64_t last_capability();

}  // namespace coretap
