// Completion on the command line: the hidden command __complete, which the scripts in completion/
// call with the words typed so far.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/options.hpp"
#include "coretap/tool.hpp"

namespace coretap {

inline constexpr char kCompleteCommand[] = "__complete";
inline constexpr std::size_t kMostCandidates = 500;

struct Completions {
  std::vector<Completion> candidates;                                   ///< whole words
  enum Shell { nothing, files, directories, command } shell = nothing;  ///< what the shell adds
  std::size_t command_at = 0;  ///< command: the word, counted from 0, that starts a command line
};

/// `words`: those after the name of the program, the last one as far as it is typed. `linked`: the
/// tool that the program is by its name; nullptr: it is coretap.
Completions complete(const Registered* linked, const std::vector<std::string>& words);

/// A line for each candidate, "WORD<TAB>DESCRIPTION", and last what the shell completes itself:
/// ":nothing", ":files", ":directories" or ":command N".
std::string printed(const Completions& completion);

/// Values of a kind that this machine has and that start with `prefix`; a bounded number of them.
std::vector<Completion> values(Complete kind, std::string_view prefix);

/// The exit status.
int run_complete(const Registered* linked, const std::vector<std::string>& words);

}  // namespace coretap
