// The report of memleak: allocations that were not freed, by stack, at each interval.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct OutstandingReport {};

std::shared_ptr<const ReportKind> make_kind(OutstandingReport report);

}  // namespace coretap
