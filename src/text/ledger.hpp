// Counts of events that are in the output, and of those that are not.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/json.hpp"
#include "coretap/schema.hpp"
#include "lib/core/shared.h"

namespace coretap {

struct Ledger {
  std::uint64_t shown = 0;
  std::uint64_t count[LEDGER_CAUSES] = {};
  // Not counted by kernel programs:
  std::uint64_t limited = 0;  ///< by --max-rate
  std::uint64_t unread = 0;   ///< in the ring buffer when tracing ended, and too many to be shown
  std::map<std::string_view, std::uint64_t> cut_by;  ///< of LEDGER_STACK_CUT, by reason

  /// The outcome of an event; each event that is seen has exactly one.
  struct Outcome {
    std::string_view name;
    std::uint64_t count;
    bool at_end = false;  ///< known at the end of the run, until then 0
  };
  std::vector<Outcome> outcomes() const;
  std::uint64_t seen() const;
  /// Counts a user stack shown this many times; `cut`: why it is truncated, empty: it is complete;
  /// `guessed`: number of its frames that only a frame pointer led to.
  void user_stack(std::string_view cut, std::uint32_t guessed, std::uint64_t times);
  /// True if any count makes --strict fail.
  bool data_lost() const;
  /// A line of text; empty if there is nothing to report beyond seen and shown.
  /// Losses are colored if `fd` is a terminal.
  std::string text(bool verbose, int fd = -1) const;
  /// Losses and limitations as text; empty: none.
  std::vector<std::string> losses() const;
  void json(JsonLine& line) const;
  static std::vector<OutputKey> keys();  ///< of the line that has these

 private:
  std::string reasons() const;
};

}  // namespace coretap
