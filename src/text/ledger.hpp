// Counts of what is not in the output, and of what is.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/shared.h"
#include "text/json.hpp"

namespace coretap {

struct Ledger {
  std::uint64_t shown = 0;
  std::uint64_t count[LEDGER_CAUSES] = {};
  // Which no kernel program knows:
  std::uint64_t limited = 0;  ///< by --max-rate
  std::uint64_t unread = 0;   ///< in the ring buffer when tracing ended, and too many to be shown
  std::map<std::string_view, std::uint64_t> cut_by;  ///< of LEDGER_STACK_CUT, by reason

  /// What becomes of an event; each that is seen is in one of these.
  struct Outcome {
    std::string_view name;
    std::uint64_t count;
    bool at_end = false;  ///< known when the run ends, and 0 until then
  };
  std::vector<Outcome> outcomes() const;
  std::uint64_t seen() const;
  /// A user stack is shown this many times; `cut`: why it ends too early, empty: it does not;
  /// `guessed`: frames of it that only a frame pointer led to.
  void user_stack(std::string_view cut, std::uint32_t guessed, std::uint64_t times);
  /// Anything that --strict does not forgive.
  bool data_lost() const;
  /// One line of words; empty if there is nothing to tell beyond seen and shown.
  /// Losses are painted for the terminal behind `fd`, if it is one.
  std::string text(bool verbose, int fd = -1) const;
  /// What is lost or less true, in words; empty if nothing is.
  std::vector<std::string> losses() const;
  void json(JsonLine& line) const;

 private:
  std::string reasons() const;
};

}  // namespace coretap
