// The checked configuration from the command line.
#pragma once
#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "coretap/address.hpp"
#include "coretap/hooks.hpp"
#include "coretap/options.hpp"
#include "coretap/parse.hpp"
#include "coretap/result.hpp"

namespace coretap {

enum class OutputFormat { text, json, csv };

class Config {
 public:
  /// True if this option (long name) was given. "a|b": either; "!a|b": neither; "": always true;
  /// "task-filter": any of the shared filters, or a command.
  bool holds(std::string_view condition) const;
  bool given(std::string_view option) const { return given_.contains(option); }
  bool filters_tasks() const;
  /// True if the file is below `directory`, or if no directory is set.
  bool wants_path(std::string_view path) const;
  /// Both paths are absolute, without a trailing slash.
  static bool lies_below(std::string_view path, std::string_view directory);
  /// The value of a number option.
  std::uint64_t number(std::string_view option, std::uint64_t otherwise) const;
  /// The value of an option as it was given; empty: it was not given.
  std::string_view text(std::string_view option) const;
  void give(std::string_view option, std::string_view value, bool adds_up = false);

  /// Sets a value in the BPF object's read-only data before loading.
  void set(Setting target, std::uint64_t value);
  struct Edit {
    Setting target;
    std::uint64_t value;
  };
  const std::vector<Edit>& edits() const { return edits_; }

  /// Adds an entry to a map of the BPF object, before programs are attached.
  void put(std::string_view map, std::string key, std::string value);
  struct Entry {
    std::string key, value;
  };
  using Entries = std::map<std::string, std::vector<Entry>, std::less<>>;  ///< by map
  const Entries& entries() const { return entries_; }

  /// Settings from options of one tool only: a value of each type that it uses.
  template <class Settings>
  Settings& own() {
    return std::any_cast<Settings&>(own_.try_emplace(typeid(Settings), Settings()).first->second);
  }
  template <class Settings>
  const Settings& own() const {
    static const Settings kNothing = {};
    auto found = own_.find(typeid(Settings));
    return found == own_.end() ? kNothing : std::any_cast<const Settings&>(found->second);
  }

  /// Options as given, for the JSON header.
  const std::map<std::string, std::string, std::less<>>& given_options() const { return given_; }

  OutputFormat format = OutputFormat::text;
  double interval = 0;      ///< seconds; 0: one report at the end
  std::uint64_t count = 0;  ///< reports; 0: no limit
  double duration = 0;      ///< seconds; 0: no limit
  std::vector<std::uint32_t> pids, tids;
  std::vector<std::uint32_t> uids;
  std::vector<std::uint32_t> not_pids;  ///< exclude these processes
  std::vector<std::string> not_comms;   ///< exclude these command names, whole names
  std::vector<std::string> comms;       ///< command names, whole
  std::vector<std::string> names;       ///< parts of command names
  std::string cgroup;                   ///< path or id, as given
  std::string library;         ///< path or name of the library to probe instead of the default
  std::string symbols_prefix;  ///< prefix of the probed functions' names

  std::vector<std::string> targets;  ///< arguments that name the trace targets
  std::vector<std::string> known;  ///< such arguments for known_functions.hpp; files by whole names
  std::uint64_t max_probes = 0;    ///< probes attached one by one; 0: the default limit

  std::vector<std::string> command;
  std::vector<std::uint32_t> local_ports, remote_ports;
  std::vector<AddressPrefix> local_addresses, remote_addresses;
  std::uint32_t netns = 0;            ///< inode of a network namespace; 0: all
  std::uint32_t ip = 0;               ///< only this IP version, 4 or 6; 0: both
  std::string directory;              ///< only files below it, absolute; empty: all files
  std::optional<std::uint32_t> disk;  ///< device number in the kernel's format
  std::optional<std::uint32_t> node;  ///< only memory of this NUMA node
  std::string zone;                   ///< and of zones with this name; empty: all
  std::uint64_t max_keys = 0;
  std::uint64_t max_stacks = 0;
  std::uint64_t max_events = 0;                     ///< events to show; 0: all
  std::uint64_t max_rate = 0;                       ///< events to show per second; 0: all
  std::uint64_t rotate_bytes = 0, rotate_keep = 3;  ///< of --output files, in bytes; 0: no rotation
  std::uint64_t top = 0;                            ///< rows of a table; 0: all
  std::string sort;  ///< key of the field to sort rows by; empty: the tool's default
  std::uint64_t ring_bytes = 0;
  std::vector<std::string> by;      ///< keys to aggregate rows by; empty: all keys
  std::vector<double> percentiles;  ///< 0 to 100, ascending; empty: the tool's default
  std::uint32_t stack_depth = 0;
  Sampling sampling;  ///< of perf events, overrides their hooks' defaults
  std::optional<std::uint32_t> cpu;
  enum Unwind { automatic, frame_pointers, no_walk } unwind = automatic;  ///< of user stacks
  std::uint64_t unwind_memory = 64 << 20;  ///< bytes of unwind tables
  std::string heatmap;                     ///< file for a heat map; empty: text lines, if any
  std::string svg;                         ///< file for a flame graph; "-": standard output
  std::string pprof;                       ///< file for a profile; "-": standard output
  std::vector<std::string> notes;          ///< messages to print before tracing begins

 private:
  std::map<std::string, std::string, std::less<>> given_;
  std::vector<Edit> edits_;
  Entries entries_;
  std::map<std::type_index, std::any> own_;
};

/// An option whose value, read by `parse`, is between 1 and `most`.
Option bounded(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
               std::uint64_t Config::*member, std::uint64_t most,
               std::optional<std::uint64_t> (*parse)(std::string_view) = parse_unsigned);

}  // namespace coretap
