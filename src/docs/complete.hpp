// Command line completion: the hidden command __complete, which the scripts in completion/ call
// with the words typed so far.
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
  enum Shell { nothing, files, directories, command } shell = nothing;  ///< completed by the shell
  std::size_t command_at =
      0;  ///< if command: index (from 0) of the word that starts a command line
};

/// `words`: arguments typed so far, the last one possibly incomplete. `linked`: the tool that the
/// program's name selects; nullptr: it is coretap.
Completions complete(const Registered* linked, const std::vector<std::string>& words);

/// A line for each candidate, "WORD<TAB>DESCRIPTION", and last what the shell completes:
/// ":nothing", ":files", ":directories" or ":command N".
std::string printed(const Completions& completion);

/// Values of a kind that exist on this machine and start with `prefix`; a bounded number.
std::vector<Completion> values(Complete kind, std::string_view prefix);

/// Returns the exit status.
int run_complete(const Registered* linked, const std::vector<std::string>& words);

}  // namespace coretap
