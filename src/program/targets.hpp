// What the words of a hook come to on this machine: places to attach to, each with the number of
// the target that it belongs to; and how this kernel attaches to them.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "coretap/result.hpp"
#include "lib/shared.h"

namespace coretap {

class Config;
class Kernel;
class ProbeFinder;
struct Hook;

/// A place of a program of ON_TARGETS.
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
  std::string symbol = {};    ///< function; tracepoint; of an event its category, too
  std::string module = {};    ///< of a kernel function
  std::uint64_t address = 0;  ///< of kernel code; 0: by name. Of a system call its number
  std::shared_ptr<Fd> file = {};
  std::uint64_t offset = 0;     ///< in the file
  bool instruction = false;     ///< of user_return: one of the function's return instructions
  bool within = false;          ///< behind the function's first instruction: no arguments
  std::uint64_t semaphore = 0;  ///< in the file; 0: none
  std::string arguments = {};   ///< of a USDT probe, as its note has them
};

/// The section of its programs: "target/kernel.return".
std::string_view section_of(TargetPoint::Kind kind);
/// The kind of such a section; none: it is another one.
std::optional<TargetPoint::Kind> kind_of(std::string_view section);

struct Targets {
  std::vector<std::string> names;  ///< by id
  std::vector<std::size_t> words;  ///< by id: the number of the word that named it first
  std::vector<bool> paired;        ///< by id: its entry is traced for its return's sake
  std::vector<TargetPoint> points;
  std::vector<std::string> left_out;  ///< "12 functions left out (notrace)"

  std::size_t count(TargetPoint::Kind kind) const;
};

/// As the hook wants them. Fails with exit status 2 where a word names nothing, 3 where this kernel
/// cannot trace it.
Result<Targets> find_targets(const std::vector<std::string>& words, const Hook& hook,
                             const Config& config, Kernel& kernel, ProbeFinder& finder);

/// How this kernel attaches.
struct TargetMeans {
  bool kernel_multi = false;                ///< all kernel functions by one link
  bool user_multi = false;                  ///< all places in a file by one link
  std::array<bool, TARGET_KINDS> copied{};  ///< a copy of the program for each place

  static TargetMeans of(Kernel& kernel, const Targets& targets);
  bool one_link(TargetPoint::Kind kind) const;
};

/// "kernel functions: 53"; one for each kind that there is.
std::vector<std::string> target_words(const Targets& targets, const TargetMeans& means);
/// A line for each place.
std::string list_targets(const Targets& targets);
/// More than may be attached one by one?
Result<void> check_number(const Targets& targets, const TargetMeans& means, const Config& config);

}  // namespace coretap
