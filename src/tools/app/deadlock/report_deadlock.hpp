// The report of deadlock: cycles in the order in which mutexes are taken, as they appear.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct DeadlockReport {};

std::shared_ptr<const ReportKind> make_kind(DeadlockReport report);

}  // namespace coretap
