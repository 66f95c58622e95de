// The report of walltime: where the time of threads went, by state.
#pragma once
#include <memory>

namespace coretap {

class ReportKind;

struct AccountsReport {};

std::shared_ptr<const ReportKind> make_kind(AccountsReport report);

}  // namespace coretap
