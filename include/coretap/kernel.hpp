// Properties of the running kernel and machine.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// Names and values of an enum of the kernel; empty if this kernel has none of that name.
std::vector<std::pair<std::string, std::int64_t>> enumerators_of(std::string_view type);
/// True if a structure of the kernel has this member.
bool kernel_has_field(std::string_view type, std::string_view member);

std::uint64_t page_bytes();  ///< of a page of memory
/// A user's name in /etc/passwd; the number if it is not there.
std::string user_name(std::uint32_t uid);
int possible_cpus();
/// From the last time that the list could be read.
std::vector<int> online_cpus();
/// Parses a list such as "0-3,8"; invalid parts are ignored.
std::vector<int> parse_cpus(std::string_view list);
/// Contents of a tracepoint's file in tracefs, such as "id" or "format".
Result<std::string> tracepoint_file(std::string_view category, std::string_view name,
                                    std::string_view file);
}  // namespace coretap
