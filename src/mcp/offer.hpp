// The tools as functions whose parameters come from the tools' declarations,
// and the command lines of calls. Pure, except that declarations of options may look at this
// machine.
#pragma once
#include <rapidjson/document.h>

#include <string>
#include <string_view>
#include <vector>

#include "coretap/json.hpp"
#include "coretap/options.hpp"
#include "coretap/result.hpp"

namespace coretap::mcp {

inline constexpr std::string_view kWhyTool = "why";
inline constexpr double kUsualSeconds = 5, kMostSeconds = 60;

/// A tool, or the command why.
struct Offer {
  std::string name, description;
  std::vector<Option> options;          ///< those that only read
  std::vector<Positional> positionals;  ///< what to trace
  bool seconds_are_word = false;        ///< the duration is a word, not --duration
  double least_seconds = 0.1;
};

/// Does the option only choose data? Others write files, run commands, read files that the
/// server may read and its client may not, or change how others' programs run.
bool only_chooses(const Option& option);

/// Of a tool's name or of kWhyTool; precondition: there is one.
Offer offer_of(std::string_view name);
void describe(JsonLine& line, const Offer& offer);

struct Call {
  std::vector<std::string> words;  ///< of the command line
  double seconds = kUsualSeconds;
};
/// The command line for these arguments (null: none). No value can be taken for an option.
Result<Call> call_of(const Offer& offer, const rapidjson::Value* arguments);

}  // namespace coretap::mcp
