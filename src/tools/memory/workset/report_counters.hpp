// The report of workset: what the kernel's counters grew by, of the machine or by cgroup.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coretap/fields.hpp"
#include "tools/memory/workset/counters.hpp"

namespace coretap {

class ReportKind;

struct WorksetRow {
  workset::Counters added = {};
  std::string cgroup = {};  ///< its path
  std::uint64_t cgroup_id = 0;
};

struct WorksetReport {
  std::vector<Field> fields;  ///< of a WorksetRow
};

std::shared_ptr<const ReportKind> make_kind(WorksetReport report);

}  // namespace coretap
