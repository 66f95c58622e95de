// Facts of a running system: the tool that accounts for time runs as a process, and counters are
// read before and after.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/result.hpp"
#include "why/facts.hpp"

namespace coretap::why {

/// Ends early at SIGINT or SIGTERM, with the facts until then.
Result<Facts> watch(const Target& target, double seconds);

}  // namespace coretap::why
