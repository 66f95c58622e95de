// The report of neighbours: what cgroups lose while they wait for a CPU, and to whom.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct NeighboursReport {};

std::shared_ptr<const ReportKind> make_kind(NeighboursReport report);

}  // namespace coretap
