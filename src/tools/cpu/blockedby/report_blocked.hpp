// The report of blockedby: waits, by the owner of the object that the task waited for.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct BlockedReport {};

std::shared_ptr<const ReportKind> make_kind(BlockedReport report);

}  // namespace coretap
