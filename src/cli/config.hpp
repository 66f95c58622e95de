// What the command line asked for, checked.
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

#include "base/address.hpp"
#include "base/parse.hpp"
#include "coretap/hooks.hpp"
#include "coretap/options.hpp"
#include "coretap/result.hpp"

namespace coretap {

enum class OutputFormat { text, json, csv };

class Config {
 public:
  /// Was this option (long name) given? "a|b": either; "!a|b": neither; "": always true;
  /// "task-filter": any of the shared filters, or a command.
  bool holds(std::string_view condition) const;
  bool given(std::string_view option) const { return given_.contains(option); }
  bool filters_tasks() const;
  /// Does the file lie below `directory`, or is there none?
  bool wants_path(std::string_view path) const;
  /// Both absolute, without a slash at the end.
  static bool lies_below(std::string_view path, std::string_view directory);
  /// The value of a number option.
  std::uint64_t number(std::string_view option, std::uint64_t otherwise) const;
  /// The value of an option as it was given; empty: it was not.
  std::string_view text(std::string_view option) const;
  void give(std::string_view option, std::string_view value, bool adds_up = false);

  /// Puts a value into the kernel program's read-only data, before it is loaded.
  void set(Setting target, std::uint64_t value);
  struct Edit {
    Setting target;
    std::uint64_t value;
  };
  const std::vector<Edit>& edits() const { return edits_; }

  /// Puts an entry into a map of the kernel program, before it is attached.
  void put(std::string_view map, std::string key, std::string value);
  struct Entry {
    std::string key, value;
  };
  using Entries = std::map<std::string, std::vector<Entry>, std::less<>>;  ///< by map
  const Entries& entries() const { return entries_; }

  /// What the options of a single tool say: a value of each type that it asks for.
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
  std::vector<std::uint32_t> not_pids;  ///< all processes but these
  std::vector<std::string> not_comms;   ///< all command names but these, whole
  std::vector<std::string> comms;       ///< command names, whole
  std::vector<std::string> names;       ///< parts of command names
  std::string cgroup;                   ///< path or id, as given
  std::string library;         ///< path or name of what is probed instead of the usual file
  std::string symbols_prefix;  ///< of the functions that are probed

  std::vector<std::string> targets;  ///< words that name what to trace
  std::vector<std::string> known;    ///< such words of known_functions.hpp; files by whole names
  std::uint64_t max_probes = 0;      ///< places that are attached one by one; 0: the usual limit

  std::vector<std::string> command;
  std::vector<std::uint32_t> local_ports, remote_ports;
  std::vector<AddressPrefix> local_addresses, remote_addresses;
  std::uint32_t netns = 0;            ///< inode of a network namespace; 0: all
  std::uint32_t ip = 0;               ///< only this version, 4 or 6; 0: both
  std::string directory;              ///< whose files are wanted, absolute; empty: of all
  std::optional<std::uint32_t> disk;  ///< device number as the kernel writes it
  std::optional<std::uint32_t> node;  ///< only memory of this NUMA node
  std::string zone;                   ///< and of zones of this name; empty: of all
  std::uint64_t max_keys = 0;
  std::uint64_t max_stacks = 0;
  std::uint64_t max_events = 0;                     ///< events that are shown; 0: all
  std::uint64_t max_rate = 0;                       ///< the same in a second
  std::uint64_t rotate_bytes = 0, rotate_keep = 3;  ///< of files of --output; 0: one without end
  std::uint64_t top = 0;                            ///< rows of a table; 0: all
  std::string sort;  ///< key of the field that rows come by; empty: the tool's
  std::uint64_t ring_bytes = 0;
  std::vector<std::string> by;      ///< keys by which rows are added up; empty: by all of them
  std::vector<double> percentiles;  ///< 0 to 100, ascending; empty: the tool's
  std::uint32_t stack_depth = 0;
  Sampling sampling;  ///< of perf events, instead of their hooks' own
  std::optional<std::uint32_t> cpu;
  enum Unwind { automatic, frame_pointers, no_walk } unwind = automatic;  ///< of user stacks
  std::uint64_t unwind_memory = 64 << 20;  ///< bytes of unwind tables
  std::string heatmap;                     ///< file for a heat map; empty: lines of text, if any
  std::string svg;                         ///< file for a flame graph; "-": standard output
  std::string pprof;                       ///< file for a profile; "-": standard output
  std::vector<std::string> notes;          ///< what to say before tracing begins

 private:
  std::map<std::string, std::string, std::less<>> given_;
  std::vector<Edit> edits_;
  Entries entries_;
  std::map<std::type_index, std::any> own_;
};

/// An option whose value, read by one of the above, lies between 1 and `most`.
Option bounded(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
               std::uint64_t Config::*member, std::uint64_t most,
               std::optional<std::uint64_t> (*parse)(std::string_view) = parse_unsigned);

}  // namespace coretap
