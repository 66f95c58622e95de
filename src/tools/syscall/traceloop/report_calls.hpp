// The report of traceloop: system calls from flight recorders (bpf/syscall/record.bpf.h), one for
// each cgroup on the command line, or one for all traced calls.
#pragma once
#include <memory>
#include <vector>

#include "tools/syscall/traceloop/recorded_cgroups.hpp"

namespace coretap {

class Config;
class ReportKind;

/// The tool's part of the configuration (Config::own).
struct CallSettings {
  std::vector<RecordedCgroup> cgroups;
  bool cgroups_follow = false;  ///< the word "cgroups" was given
  int dump_signal = 0;          ///< signal with which the user requests a report; 0: none
};

/// Are calls shown on request, not as they arrive?
bool keeps_calls(const Config& config);

struct CallReport {};

std::shared_ptr<const ReportKind> make_kind(CallReport report);

}  // namespace coretap
