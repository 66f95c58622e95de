// The report of memleak: allocations that were not freed, by stack, at each interval.
#pragma once
#include <memory>
#include <string_view>

namespace coretap {

class ReportKind;

struct OutstandingReport {
  std::string_view value_title;  ///< "bytes outstanding"
};

std::shared_ptr<const ReportKind> make_kind(OutstandingReport report);

}  // namespace coretap
