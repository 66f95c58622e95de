// The report of traceloop: system calls out of flight recorders (bpf/syscall/record.bpf.h), one for
// each cgroup of the command line, or one for all that is traced.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tools/syscall/traceloop/recorded_cgroups.hpp"

namespace coretap {

class Config;
class ReportKind;

/// What the command line says to it alone (Config::own).
struct CallSettings {
  std::vector<RecordedCgroup> cgroups;
  int dump_signal = 0;  ///< by which the user requests a report; 0: none
};

struct CallReport {
  std::uint64_t slots = 8192;              ///< for each CPU, where --size does not say
  bool (*keeps)(const Config&) = nullptr;  ///< shows calls when asked to, not as they come
  std::string_view under_way;  ///< the program, of kind iter, that reports calls without an end
};

std::shared_ptr<const ReportKind> make_kind(CallReport report);

}  // namespace coretap
