// The steps of every tool's run, always in the same order.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "coretap/tool.hpp"
#include "metrics/exporter.hpp"

namespace coretap {

struct RecordTo;
struct Session;

/// For a tool that `coretap serve` runs: pages of metrics on request instead of reports.
struct Exported {
  metrics::ExportOptions options;
  Fd channel;      ///< for requests and replies
  Fd events = {};  ///< receives events, if they are pushed
};

/// Runs a tool with its arguments; returns the exit status.
int run_tool(const Tool& tool, const std::vector<std::string>& arguments,
             Exported* exported = nullptr, const RecordTo* recorded = nullptr);

/// Prints a recording as the run would have printed it with these arguments, too.
int show_recording(const std::string& path, const std::vector<std::string>& arguments);

bool is_recording(const std::string& path);
/// The text that `coretap show --json` prints, with a report for each second or as often as the run
/// had one.
Result<std::string> recording_as_json(const std::string& path);
/// Prints what a recording has.
int show_info(const std::string& path);

/// Opens, configures, plans and loads, without attaching; `doctor` does that with each tool.
Result<void> prepare(Session& session);

}  // namespace coretap
