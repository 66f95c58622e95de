// The report of ttysnoop --raw: bytes, as they were written.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct RawReport {};

std::shared_ptr<const ReportKind> make_kind(RawReport report);

}  // namespace coretap
