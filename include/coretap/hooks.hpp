// Where a tool attaches: hooks, each with its candidates, best first.
// Programs on user functions have sections "uprobe/LIBRARY:function":
// the library finds the files (probe_target.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/object_names.hpp"
#include "coretap/when.hpp"

namespace coretap {

class Config;

/// A requirement of a candidate on the running kernel, besides its programs' attach points.
struct Need {
  enum Kind { field, function, enum_value, arguments } kind;
  std::string_view type;         ///< struct, function, enum or tracepoint
  std::string_view member = {};  ///< field or enumerator
  int count = 0;                 ///< of a tracepoint's arguments
};

inline Need has_field(std::string_view type, std::string_view member) {
  return {Need::field, type, member};
}
inline Need has_enumerator(std::string_view type, std::string_view member) {
  return {Need::enum_value, type, member};
}
inline Need has_arguments(std::string_view tracepoint, int count) {
  return {Need::arguments, tracepoint, {}, count};
}

/// How often a perf event (section "perf_event/NAME", program/perf_events.hpp) runs its programs:
/// times per second on each CPU, or counts of the event (for clocks: nanoseconds) per run.
struct Sampling {
  std::uint64_t hz = 0;
  std::uint64_t period = 0;
  bool one_cpu = false;  ///< only on the first one: the program examines all CPUs
  /// Of perf(1), in place of the program's own; none: that one.
  std::vector<std::string> events = {};

  Sampling on_one_cpu() const { return {hz, period, true}; }
  bool operator==(const Sampling&) const = default;
};
inline Sampling at_hz(std::uint64_t hz) { return {.hz = hz}; }
inline Sampling every(std::uint64_t period) { return {.period = period}; }

/// At higher rates, a CPU could do little else.
inline constexpr std::uint64_t kLeastClockPeriod = 50'000;  // ns
inline constexpr std::uint64_t kLeastHardwarePeriod = 100;  // events
inline constexpr std::uint64_t kMostClockHz = 1'000'000'000 / kLeastClockPeriod;

/// A kernel function; `module`: the module that may contain it.
struct FunctionName {
  std::string_view function, module;
};
/// Resolves a word in a program's section, by the command line
/// ("TYPE_file_open"); an empty function rejects the candidate.
using FunctionOf = FunctionName (*)(const Config&, std::string_view word);

/// One way to attach a hook: all its programs, or it is rejected.
/// Empty: another hook already delivers the event on this kernel.
/// The ELF section name of each program defines its attach point.
struct Candidate {
  std::vector<ProgramName> programs;
  std::vector<Need> needs = {};
  std::string_view caveat = {};  ///< limitation of this candidate; printed when it is chosen
  /// For sections "fentry/WORD" and "fexit/WORD"; null: words are function names.
  FunctionOf function_of = nullptr;
  std::string_view only = {};  ///< what the command line must name for that, for messages
};

/// Words for targets: "vfs_*", "c:malloc", "t:sched:*" (src/program/target.hpp).
using TargetWords = std::vector<std::string> (*)(const Config&);

/// The part of a call that programs at the entry of a user function read, besides the memory of the
/// process: the probe may be behind instructions that change nothing of it
/// (program/function_returns.hpp:entry_place). Sections "uprobe/..." have the number of arguments:
/// "uprobe/libc:free/1".
struct EntryReads {
  unsigned arguments = 6;  ///< the first ones, in registers
  bool stack = true;       ///< its address: for stacks, and to match the return
};
using EntryReadsOf = EntryReads (*)(const Config&, std::size_t word);
inline EntryReads reads_nothing(const Config&, std::size_t) { return {0, false}; }
inline EntryReads reads_stack(const Config&, std::size_t) { return {0, true}; }

struct Hook {
  std::string_view name;
  std::vector<Candidate> candidates;  ///< best first
  When when = {};                     ///< only then
  std::string_view optional = {};     ///< what is lost without it; empty: the tool requires it
  Sampling sampling = {};             ///< of its perf events, unless options change it
  std::string_view instead = {};      ///< what to do if no candidate works; empty: coretap doctor
  /// For programs of bpf/lib/targets/each_target.bpf.h: their targets come from these
  /// words; the library selects the programs needed for the words and this kernel.
  TargetWords targets = nullptr;
  /// The words are built in (known_functions()): targets that cannot be traced are skipped.
  bool known = false;
  /// For programs of bpf/lib/targets/each_call.bpf.h:
  /// at entry and return of the words' targets.
  bool calls = false;
  /// For programs of bpf/lib/targets/each_place.bpf.h: the same function in two words is two
  /// targets, and so are two places of a USDT probe; the record of a tracepoint can be read.
  bool by_word = false;
  /// For such words: which ones need values from the entry at the return.
  std::vector<bool> (*paired)(const Config&) = nullptr;
  /// Of the entries of the words' user functions; null: all that EntryReads has.
  EntryReadsOf reads = nullptr;
  std::size_t event = 0;  ///< which of Sampling::events it samples; not wanted without that one
};

/// The tool's positional words (shared::target_arguments).
std::vector<std::string> words_of_command_line(const Config& config);
/// The hook of each_target.bpf.h.
Hook traced(std::string_view name, TargetWords words = words_of_command_line,
            EntryReadsOf reads = reads_stack);
/// The hook of each_call.bpf.h.
Hook traced_calls(std::string_view name, EntryReadsOf reads);

/// The hook of each_place.bpf.h.
Hook traced_by_word(std::string_view name, TargetWords words,
                    std::vector<bool> (*paired)(const Config&));

/// The hook of ON_WHOLE_CALLS (bpf/general/call_values.bpf.h).
Hook traced_whole(std::string_view name, TargetWords words);

/// The hooks of bpf/lib/sched/run_delay.bpf.h; the tool has shared::affinity().
std::vector<Hook> run_delay_hooks();
/// The hook of bpf/lib/sched/still_waiting.bpf.h.
Hook waits_under_way();
/// The hook of bpf/lib/net/accepted.bpf.h; `when` as in Hook.
Hook accepted_connections(When when = {});
/// The hook of the program that forgets a socket, for kernels where that is not automatic.
Hook ended_sockets(When when = {});

/// For each word of the command line: does it trace returns and use $latency or $entry? For
/// Hook::paired.
std::vector<bool> words_that_ask_for_entries(const Config& config);
/// For Hook::reads of such words: the highest of arg1 to arg6 where they name nothing else.
EntryReads reads_of_expressions(const Config& config, std::size_t word);

}  // namespace coretap
