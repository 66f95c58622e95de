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
#include "coretap/object_names.hpp"
#include "coretap/options.hpp"
#include "coretap/parse.hpp"
#include "coretap/result.hpp"
#include "coretap/when.hpp"

namespace coretap {

enum class OutputFormat { text, json, csv };

class Config {
 public:
  bool holds(When condition) const { return holds_text(condition); }
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
  /// Sets one more bit.
  void add_bit(Setting mask, std::uint64_t bit);
  struct Edit {
    Setting target;
    std::uint64_t value;
  };
  const std::vector<Edit>& edits() const { return edits_; }

  /// Adds an entry to a map of the BPF object, before programs are attached.
  void put(MapName map, std::string key, std::string value);
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
  std::vector<std::string> command;  ///< to run and trace
  std::vector<std::string> words;    ///< arguments that are not options
  Sampling sampling;                 ///< of perf events, overrides their hooks' defaults
  std::vector<std::string> notes;    ///< messages to print before tracing begins
  /// Arguments that select data, with defaults: "MIN_US 10000".
  std::vector<std::string> arguments;

  /// The tasks to trace, without those of not_...; what is empty selects all.
  struct Tasks {
    std::vector<std::uint32_t> pids, tids, uids, not_pids;
    std::vector<std::string> comms, not_comms;  ///< whole command names
    std::vector<std::string> names;             ///< parts of command names
    std::string cgroup;                         ///< path or id, as given
    bool operator==(const Tasks&) const = default;
  } tasks;

  /// The connections to trace; what is empty or 0 selects all.
  struct Flows {
    std::vector<std::uint32_t> local_ports, remote_ports;
    std::vector<AddressPrefix> local_addresses, remote_addresses;
    std::uint32_t netns = 0;  ///< inode of a network namespace
    std::uint32_t ip = 0;     ///< version, 4 or 6
  } flows;

  /// The only disk, CPU or directory to trace.
  struct Places {
    std::optional<std::uint32_t> disk, cpu;  ///< numbers; the disk's in the kernel's format
    std::string directory;                   ///< absolute; empty: all files
  } places;

  /// Functions to probe, and where they are.
  struct Probes {
    std::string library;               ///< path or name, instead of the default
    std::string prefix;                ///< of the probed functions' names
    std::vector<std::string> targets;  ///< arguments that name the trace targets
    std::vector<std::string> known;    ///< the same for known_functions.hpp; files by whole names
    std::uint64_t most = 0;            ///< attached one by one; 0: the default limit
  } probes;

  /// When reports are made, and tracing ends.
  struct Schedule {
    double interval = 0;      ///< seconds; 0: one report at the end
    std::uint64_t count = 0;  ///< reports; 0: no limit
    double duration = 0;      ///< seconds; 0: no limit
  } schedule;

  /// Rows of tables.
  struct Rows {
    std::uint64_t top = 0;            ///< how many to show; 0: all
    std::string sort;                 ///< key of a field; empty: the tool's default
    std::vector<std::string> by;      ///< keys to aggregate by; empty: all keys
    std::vector<double> percentiles;  ///< 0 to 100, ascending; empty: the tool's default
    std::uint64_t max_keys = 0;       ///< in the kernel; 0: scaled to the machine
  } rows;

  /// Events that are shown one by one.
  struct Events {
    std::uint64_t most = 0, per_second = 0;  ///< to show; 0: all
    std::uint64_t ring_bytes = 0;  ///< of the buffer from the kernel; 0: the report's default
  } events;

  /// Walks and storage of stacks.
  struct Stacks {
    std::uint32_t depth = 0;  ///< frames; 0: the default
    std::uint64_t most = 0;   ///< in the kernel; 0: scaled to the machine
    enum Unwind { automatic, frame_pointers, no_walk } unwind = automatic;  ///< of user stacks
    std::uint64_t unwind_memory = 64 << 20;  ///< bytes of unwind tables
    /// The frames of user stacks: of programs and interpreted code, or one kind of them.
    enum Code { all, native, interpreted } code = all;
  } stacks;

  /// Files to write; "-": standard output, empty: none.
  struct Files {
    std::string heatmap, svg, pprof, dot;  ///< heat map, flame graph, profile and call graph
    std::string record;                    ///< recording
    std::string perfetto;                  ///< trace of events; never standard output
    std::uint64_t rotate_bytes = 0, rotate_keep = 3;  ///< of --output; 0 bytes: no rotation
  } files;

 private:
  bool holds_text(std::string_view condition) const;
  bool lists(std::string_view word) const;

  std::map<std::string, std::string, std::less<>> given_;
  std::vector<Edit> edits_;
  Entries entries_;
  std::map<std::type_index, std::any> own_;
};

}  // namespace coretap
