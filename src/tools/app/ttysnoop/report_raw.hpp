// The report of ttysnoop --raw: the written bytes, unchanged.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct RawReport {};

std::shared_ptr<const ReportKind> make_kind(RawReport report);

}  // namespace coretap
