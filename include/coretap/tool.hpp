// A tool is one declarative value of this type; the library does everything else.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/hooks.hpp"
#include "coretap/identity.hpp"
#include "coretap/object_names.hpp"
#include "coretap/options.hpp"
#include "coretap/reports.hpp"

namespace coretap {

struct Session;

struct Example {
  std::string_view command;
  std::string_view meaning;
};

/// A question of a user with a performance problem, worded without knowledge
/// of the tool: for the index of coretap(8), and the search of `coretap find`.
struct Question {
  std::string_view question;  ///< "Which process opens that file?"
  std::string_view command;   ///< the command line that answers it
};

/// Differences that a user of the tool of that name in bcc or libbpf-tools must know.
struct Difference {
  enum Where { bcc, libbpf_tools, both } where;
  std::string_view what;  ///< sentences: first about this tool, then about the other
};

/// A tool name elsewhere for an option of this tool.
struct OtherName {
  std::string_view name;    ///< "ext4dist"
  std::string_view option;  ///< "--type=ext4"
};

/// The compiled kernel program, embedded in the executable.
struct KernelObject {
  std::string_view compressed;  ///< by zstd; empty: the tool has none
  std::string_view model = {};  ///< also compressed: the object used as its dictionary; empty: none

  /// The ELF file, decompressed by each call; empty on failure.
  std::string bytes() const;
};

template <class Skeleton>
KernelObject skeleton() {
  return {Skeleton::compressed(), Skeleton::model()};
}

/// The number of entries in a map; never a constant that would silently drop data.
struct MapSize {
  enum By {
    block_requests,  ///< capacity of the disks' queues
    cached_pages,    ///< a fraction of the pages that the cache can hold
    block_bios,      ///< like block_requests, if submitters are known only by bio
    disks,           ///< the number of disks, with a reserve
    slab_caches,     ///< like disks; preallocated, as the traced functions are the allocator
    stacks,          ///< --stack-storage-size, else from the memory size
    objects,         ///< --max-keys, else a million; for LRU maps a quarter of that
    sockets,         ///< one for each 64 KB of memory
    per_cpu,         ///< operations in progress on CPUs, with a reserve
  };
  MapName map;
  By by;
  When when = {};  ///< only with these options
  enum Entries {
    on_demand,     ///< allocated while tracing, if this kernel can do so safely
    preallocated,  ///< fewer, by memory size: the traced functions are the allocator
  } entries = on_demand;
};

/// The report in place of a tool's usual report when an option (long name) is given.
struct Variant {
  std::string_view when;
  Report report;
};

struct Tool {
  std::string_view name;
  std::string_view subsystem;    ///< filled in by the registry
  std::string_view summary;      ///< one line, no full stop
  std::string_view description;  ///< meaning of the numbers, paragraphs separated by an empty line
  std::string_view overhead;     ///< costs for the traced system
  std::vector<Example> examples;
  std::vector<Question> questions;  ///< one to five
  std::vector<OtherName> other_names = {};
  std::vector<Difference> differs = {};  ///< from similar tools; empty if there are none
  KernelObject object;
  std::vector<Positional> positionals;
  std::vector<Option> options;
  std::vector<OtherMeaning> other_meanings = {};
  std::vector<Elsewhere> elsewhere;  ///< options of bcc or libbpf-tools that this tool rejects
  std::vector<Hook> hooks;
  std::vector<MapSize> maps;  ///< in addition to those that the library knows
  Report report;
  std::vector<Variant> other_reports;
  std::string_view announce;  ///< "Tracing block device I/O"; {stacks}, {cpus}: what is selected
  /// Options that cannot be used together.
  std::vector<std::pair<std::string_view, std::string_view>> exclusive;
  /// Final check of a parsed command line: combinations of options.
  Result<void> (*check)(const Config&) = nullptr;
  /// Looks up system data for the kernel program, before it is loaded.
  Result<void> (*look_up)(Config&) = nullptr;
  /// Compiles expressions (Session::pads) after the plan is made; or takes a recording's
  /// (Ask::report).
  Result<void> (*compile)(Session&) = nullptr;
  /// Checks what the plan has found for the command line.
  Result<void> (*check_plan)(Session&) = nullptr;
  /// Output of --list, instead of tracing; the tool then has that option.
  std::string (*list)(const Config&) = nullptr;
  /// The other name by which it was called, and the option that this name implies.
  OtherName called = {};

  /// In messages and help. Data has the tool's own name.
  std::string_view shown_name() const { return called.name.empty() ? name : called.name; }
};

/// All tools, ordered by subsystem; each function builds its table when called.
struct Registered {
  std::string_view subsystem;
  std::string_view name;
  Tool (*make)();
};
const std::vector<Registered>& registry();
const Registered* find_tool(std::string_view name);
Tool build(const Registered& entry);

}  // namespace coretap

/// Starts a tool file's only function: TOOL(biolatency) { return {...}; }
#define TOOL(name)           \
  namespace coretap::tools { \
  Tool name();               \
  }                          \
  coretap::Tool coretap::tools::name()
