// One maker per kind of report.
#pragma once
#include <memory>

#include "reports/reporter.hpp"

namespace coretap {

std::unique_ptr<Reporter> make(const HistogramReport& report);
std::unique_ptr<Reporter> make(const EventReport& report);
std::unique_ptr<Reporter> make(const StackReport& report);
std::unique_ptr<Reporter> make_held(const StackReport& report);  ///< for StackReport::held
std::unique_ptr<Reporter> make(const SumReport& report);
std::unique_ptr<Reporter> make(const TableReport& report);
std::unique_ptr<Reporter> make(const CallReport& report);
std::unique_ptr<Reporter> make(const SnapshotReport& report);

}  // namespace coretap
