// A tool is one declarative value of this type; everything else is the library's.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/hooks.hpp"
#include "coretap/identity.hpp"
#include "coretap/options.hpp"
#include "coretap/reports.hpp"

namespace coretap {

struct Session;

struct Example {
  std::string_view command;
  std::string_view meaning;
};

/// What somebody asks when something is slow, in words that need not know the tool: the index of
/// coretap(8), and what `coretap find` searches.
struct Question {
  std::string_view question;  ///< "Which process opens that file?"
  std::string_view command;   ///< the command line that answers it
};

/// What a user of bcc or libbpf-tools has to know about the tool of that name there.
struct Difference {
  enum Where { bcc, libbpf_tools, both } where;
  std::string_view what;  ///< sentences: what is so here, then what is so there
};

/// A name under which peers have what the tool does with an option.
struct OtherName {
  std::string_view name;    ///< "ext4dist"
  std::string_view option;  ///< "--type=ext4"
};

/// The compiled kernel program that is in the executable.
struct KernelObject {
  std::string_view compressed;  ///< by zstd; empty: the tool has none
  std::string_view model = {};  ///< compressed, too: the object that is its dictionary; empty: none

  /// The ELF file, decompressed again by each call; empty if that fails.
  std::string bytes() const;
};

template <class Skeleton>
KernelObject skeleton() {
  return {Skeleton::compressed(), Skeleton::model()};
}

/// How many entries a map gets; never a constant that silently drops.
struct MapSize {
  enum By {
    block_requests,  ///< as many as the disks' queues can hold
    cached_pages,    ///< a part of the pages that the cache can hold
    block_bios,      ///< the same where submitters are known by their bios only
    disks,           ///< as many as there are, and more
    slab_caches,     ///< the same; preallocated, as what is traced is allocation itself
    stacks,          ///< --stack-storage-size, else from the memory
    objects,         ///< --max-keys, else a million; of the last ones, a quarter of that
    sockets,         ///< one for each 64 KB of memory
    per_cpu,         ///< what CPUs have under way, with room to spare
  };
  std::string_view map;
  By by;
  std::string_view when = {};  ///< only with these options
  enum Entries {
    on_demand,     ///< where this kernel can allocate them safely while it traces
    preallocated,  ///< fewer, as memory allows: what is traced is allocation itself
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
  std::string_view description;  ///< what the numbers mean, paragraphs separated by an empty line
  std::string_view overhead;     ///< what it costs the traced machine
  std::vector<Example> examples;
  std::vector<Question> questions;  ///< one to four
  std::vector<OtherName> other_names = {};
  std::vector<Difference> differs = {};  ///< from peers' tools; none where they have no such tool
  KernelObject object;
  std::vector<Positional> positionals;
  std::vector<Option> options;
  std::vector<Elsewhere> elsewhere;  ///< what bcc or libbpf-tools have and this tool refuses
  std::vector<Hook> hooks;
  std::vector<MapSize> maps;  ///< beyond those that the library knows
  Report report;
  std::vector<Variant> other_reports;
  std::string_view announce;  ///< "Tracing block device I/O"
  /// Options that cannot be used together.
  std::vector<std::pair<std::string_view, std::string_view>> exclusive;
  /// Last word on a parsed command line: combinations that no single option can judge.
  Result<void> (*check)(const Config&) = nullptr;
  /// Asks the machine what the kernel program has to know, before it is loaded.
  Result<void> (*look_up)(Config&) = nullptr;
  /// Makes code of the command line's expressions (Session::pads), once the plan is made.
  Result<void> (*compile)(Session&) = nullptr;
  /// What --list prints, instead of tracing; a tool that has it has that option.
  std::string (*list)(const Config&) = nullptr;
};

/// All tools, in the order of their subsystems; each function builds its table when called.
struct Registered {
  std::string_view subsystem;
  std::string_view name;
  Tool (*make)();
};
const std::vector<Registered>& registry();
const Registered* find_tool(std::string_view name);
Tool build(const Registered& entry);

}  // namespace coretap

/// Begins a tool file's one function: TOOL(biolatency) { return {...}; }
#define TOOL(name)           \
  namespace coretap::tools { \
  Tool name();               \
  }                          \
  coretap::Tool coretap::tools::name()
