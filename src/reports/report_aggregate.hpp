// Reads an aggregate's counters and shows what was added.
#pragma once
#include <memory>

#include "coretap/live_report.hpp"
#include "reports/reporter.hpp"

namespace coretap {

/// `live` may go meanwhile: it is copied.
std::unique_ptr<Reporter> make_aggregate_reporter(const LiveReport& live);

}  // namespace coretap
