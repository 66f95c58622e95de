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

/// Prints recordings as the runs would have printed them: `words` are files and directories, the
/// segments of one run being one recording, then perhaps the name of one of them, and arguments.
/// `info`: prints what they have.
int show_recordings(std::vector<std::string> words, bool info);

bool is_recording(const std::string& path);
/// The text that `coretap show --json` prints, with a report for each second or as often as the run
/// had one.
Result<std::string> recording_as_json(const std::string& path);

/// Opens, configures, plans and loads, without attaching; `doctor` does that with each tool.
Result<void> prepare(Session& session);

}  // namespace coretap
