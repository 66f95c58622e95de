// The steps that every tool's run takes, always in the same order.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "coretap/tool.hpp"
#include "metrics/exporter.hpp"

namespace coretap {

struct Session;

/// For a tool that `coretap serve` runs: pages of metrics on request, in place of reports.
struct Exported {
  metrics::ExportOptions options;
  Fd channel;      ///< of requests and replies
  Fd events = {};  ///< that takes events, if they are pushed
};

/// Runs a tool with its arguments; returns the exit status.
int run_tool(const Tool& tool, const std::vector<std::string>& arguments,
             Exported* exported = nullptr);

/// Which build this is, after its version: "commit 0123456789ab, libbpf 1.1, compiler GNU 12.2.0".
std::string build_words();

/// Opens, configures, plans and loads, without attaching: what `doctor` asks of each tool.
Result<void> prepare(Session& session);

}  // namespace coretap
