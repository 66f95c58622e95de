// Reads an aggregate's counters and shows their growth.
#pragma once
#include <memory>

#include "coretap/live_report.hpp"
#include "reports/reporter.hpp"

namespace coretap {

/// Copies `live`.
std::unique_ptr<Reporter> make_aggregate_reporter(const LiveReport& live);

}  // namespace coretap
