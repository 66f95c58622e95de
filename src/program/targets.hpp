// Resolves the words of a hook on this machine: places to attach to, each with the id of the target
// that it belongs to; and how this kernel attaches to them.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "lib/core/shared.h"
#include "symbols/code_place.hpp"

struct bpf_program;

namespace coretap {

class Config;
class Kernel;
class ProbeFinder;
struct Hook;

/// An attach point of a program of the targets.
struct TargetPoint {
  enum Kind {
    kernel,
    kernel_return,
    user,
    user_return,
    usdt,
    tracepoint,  ///< raw
    event,       ///< tracepoint by a perf event
    call_entry,
    call_end,
    kinds
  } kind = kernel;
  std::uint32_t id = 0;       ///< of its target
  std::string symbol = {};    ///< function; tracepoint; for an event with its category
  std::string module = {};    ///< for a kernel function
  std::uint64_t address = 0;  ///< of kernel code; 0: by name. For a system call its number
  std::shared_ptr<Fd> file = {};
  std::uint64_t offset = 0;  ///< in the file; of a function its start
  symbols::EntryPlace probed =
      {};                       ///< the instruction; elsewhere than `offset` at a function's entry
  bool instruction = false;     ///< of user_return: one of the function's return instructions
  bool within = false;          ///< after the function's first instruction: no arguments
  std::uint64_t semaphore = 0;  ///< in the file; 0: none
  std::string arguments = {};   ///< of a USDT probe, as in its note
};

/// The places of programs with such a section ("target/kernel.return"); none: another section.
std::optional<TargetPoint::Kind> kind_of(std::string_view section);
/// The same for a program; none: it is not attached to targets.
std::optional<TargetPoint::Kind> kind_of(const bpf_program* program);
/// The kind of its programs (TargetMeans::copied).
target_kind program_kind(TargetPoint::Kind kind);
/// A system call's entry or end, which one program sees for all calls.
bool is_call(TargetPoint::Kind kind);

struct Targets {
  std::vector<std::string> names;  ///< by id
  std::vector<std::size_t> words;  ///< by id: the number of the word that named it first
  std::vector<bool> paired;        ///< by id: its entry is traced to match its return
  std::vector<TargetPoint> points;
  std::vector<std::string> left_out;  ///< "12 functions left out (notrace)"

  std::size_t count(TargetPoint::Kind kind) const;
};

/// As the hook requires. Fails with exit status 2 if a word matches nothing, 3 if this kernel
/// cannot trace it.
Result<Targets> find_targets(const std::vector<std::string>& words, const Hook& hook,
                             const Config& config, Kernel& kernel, ProbeFinder& finder);

/// How this kernel attaches.
struct TargetMeans {
  bool kernel_multi = false;                ///< all kernel functions with one link
  bool user_multi = false;                  ///< all places in a file with one link
  std::array<bool, TARGET_KINDS> copied{};  ///< a copy of the program for each place

  static TargetMeans of(Kernel& kernel, const Targets& targets);
  bool one_link(TargetPoint::Kind kind) const;
};

/// "kernel functions: 53"; one for each kind in use.
std::vector<std::string> target_words(const Targets& targets, const TargetMeans& means);
/// How many places cost a single step, and how much that is; empty: none.
std::string stepped_words(const Targets& targets);
/// A line for each place.
std::string list_targets(const Targets& targets);
/// Fails if there are more places than may be attached one by one.
Result<void> check_number(const Targets& targets, const TargetMeans& means, const Config& config);

}  // namespace coretap
