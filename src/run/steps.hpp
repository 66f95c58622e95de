// Steps of a run that `coretap show` takes, too.
#pragma once
#include <optional>
#include <string>

#include "coretap/result.hpp"

namespace coretap {

class Reporter;
struct Invocation;
struct Session;
struct Tool;

/// The text that is printed instead of a run, for --help and the like; nothing: the tool runs.
std::optional<std::string> text_instead(const Invocation& parsed, const Tool& tool);
/// Reads the names that the report's fields need.
void learn_names(Session& s);
/// --output.
Result<void> redirect(Session& s);
/// The status of a run without failure, unless its output cannot be written.
Result<int> end_of_output(Session& s);
/// The end of a report, and the ledger. `command_status`: of the command after --; -1: none.
Result<int> finish(Session& s, Reporter& reporter, int command_status);

}  // namespace coretap
