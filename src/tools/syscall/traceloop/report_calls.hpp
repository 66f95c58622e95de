// The report of traceloop: system calls from flight recorders (bpf/syscall/record.bpf.h), one for
// each cgroup on the command line, or one for all traced calls.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tools/syscall/traceloop/recorded_cgroups.hpp"

namespace coretap {

class Config;
class ReportKind;

/// The tool's part of the configuration (Config::own).
struct CallSettings {
  std::vector<RecordedCgroup> cgroups;
  int dump_signal = 0;  ///< signal with which the user requests a report; 0: none
};

struct CallReport {
  std::uint64_t slots = 8192;              ///< per CPU; default of --size
  bool (*keeps)(const Config&) = nullptr;  ///< shows calls on request, not as they arrive
  std::string_view under_way;  ///< name of the iterator program that reports calls in progress
};

std::shared_ptr<const ReportKind> make_kind(CallReport report);

}  // namespace coretap
