// The report of neighbours: the time that cgroups lose while they wait for a CPU, by culprit.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct NeighboursReport {};

std::shared_ptr<const ReportKind> make_kind(NeighboursReport report);

}  // namespace coretap
