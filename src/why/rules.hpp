// The rules of `coretap why`: which lost time means what, as values. A rule explains the time of
// its states if its condition holds; a state's time goes to the first such rule, so special causes
// come before general ones.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "why/facts.hpp"

namespace coretap::why {

struct Evidence {
  std::string name, value, source;
};

struct Culprit {
  std::string kind = {};  ///< "process", "cgroup", "disk"; empty: none is known
  std::string name = {};
};

struct Rule {
  std::string_view id;
  std::vector<std::string_view> states;  ///< keys of Account::ns
  std::string_view says;                 ///< a sentence that ends before ": 12 % of its time"
  /// The condition, and the same in words. None: it always holds.
  bool (*when)(const Facts&) = nullptr;
  std::string_view condition = {};
  /// A counter of microseconds in which the kernel says that a task was held up by the same cause,
  /// also while it ran: with the condition, it counts if it is more than the time of the states.
  std::string_view stall_us = {};
  std::vector<Evidence> (*evidence)(const Facts&) = nullptr;
  std::vector<Culprit> (*culprits)(const Facts&) = nullptr;
  /// The next command; {target} is replaced by the options that select the target.
  std::string_view command;
  /// The time is spent on CPUs, which is what a process is for: it is the answer only if hardly
  /// anything else is.
  bool computes = false;
  /// Others cause it: it ranks below the target's own causes that cost at least half as much.
  bool foreign = false;
  /// Only if a target was named: on a machine, some process is always in these states.
  bool needs_target = false;
  std::vector<std::string_view> causes = {};  ///< rules whose finding is an effect of this one
};

std::span<const Rule> rules();

/// Something that is wrong however little time it costs, or whose cost is in no time of the target:
/// datagrams that were dropped, processes that were killed.
struct Note {
  std::string_view id;
  std::vector<std::string_view> counters;  ///< at least one has grown
  std::string_view says;                   ///< a sentence that ends before ": 12"
  std::string_view command;                ///< as in Rule
};

std::span<const Note> notes();

/// States in which a thread has nothing to do, or in which it is not known whether it has: their
/// time is not busy time.
bool is_idle(std::string_view state, bool has_target);

/// The disk whose requests waited longest in total; empty: none had any.
std::string busiest_disk(const Facts& facts);

}  // namespace coretap::why
