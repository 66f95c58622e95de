// The report of blockedby --now: blocked tasks below those that hold what they wait for.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct NowReport {};

std::shared_ptr<const ReportKind> make_kind(NowReport report);

}  // namespace coretap
