// Names of errno values.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

/// Names an errno internal to the kernel: the call is restarted, or the signal's handler decides.
std::string_view restart_name(int error);
/// "ENOENT"; an error unknown to the C library stays a number, as does 0.
std::string error_name(int error);
/// An errno by its name or number; none: invalid.
std::optional<int> error_number(std::string_view text);

}  // namespace coretap
