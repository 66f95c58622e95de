// The command line of a tool, declared once: used by parsing, help, man page and completion.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "coretap/result.hpp"
#include "coretap/when.hpp"

namespace coretap {

class Config;

/// Read-only data of a skeleton: the only channel from options to a kernel program.
template <class Skeleton>
using rodata_of = std::remove_pointer_t<decltype(Skeleton::rodata)>;

/// A location in the read-only data.
struct Setting {
  std::size_t offset = 0;
  std::size_t size = 0;  ///< bytes; 0: none
};

template <class Rodata, class T>
Setting setting(T Rodata::*member) {
  // A pointer to a data member is its offset in the Itanium C++ ABI.
  static_assert(std::is_standard_layout_v<Rodata> && std::is_trivially_copyable_v<T>);
  return {static_cast<std::size_t>(std::bit_cast<std::ptrdiff_t>(member)), sizeof(T)};
}

inline constexpr std::uint64_t kMillisecond = 1'000'000;  ///< in nanoseconds, for thresholds

/// Kinds of values that completion offers.
enum class Complete {
  nothing,
  file,
  directory,
  command,
  pid,  ///< processes only, no threads
  user,
  comm,
  cgroup,
  container,
  pod,
  unit,  ///< of systemd
  disk,
  cpu,
  syscall,
  function,    ///< of the kernel
  tracepoint,  ///< "sched:sched_switch"
  sort_key,    ///< a key of the tool's table
  tool,
  topic,  ///< a tool or a command of coretap
};

/// A value that completion offers.
struct Completion {
  std::string word;
  std::string doc = {};  ///< empty: none
};

struct Option {
  char letter = 0;           ///< 0: none
  std::string_view name;     ///< long name; the same meaning in every tool
  std::string_view metavar;  ///< empty: a flag without a value
  std::string_view doc;      ///< no full stop
  /// Stores the value ("" for a flag) in the configuration.
  std::function<Result<void>(Config&, std::string_view)> apply;
  /// Other long names in similar tools, separated by commas: accepted silently.
  std::string_view alias = {};
  Complete complete = Complete::nothing;
  bool shared = false;   ///< the same in every tool that has it
  bool adds_up = false;  ///< a list: if given twice, both apply
  bool traces = false;   ///< decides what is traced: coretap show refuses another value
  /// Values for completion, if they are a closed list.
  std::function<std::vector<Completion>()> words = {};
  /// Its value may be omitted; a word that follows belongs to it only with this ending (".svg").
  std::string_view optional_suffix = {};
  /// Without this condition it has no effect, and the command line is rejected.
  When belongs_to = {};
  /// Rejects values that a similar tool's option of this letter uses with another meaning.
  std::function<Result<void>(std::string_view)> by_letter = {};
  char alias_letter = 0;            ///< another letter in similar tools, accepted silently; 0: none
  std::string_view otherwise = {};  ///< a word for the value if it is omitted; empty: it may not be

  bool value_may_be_omitted() const { return !optional_suffix.empty() || !otherwise.empty(); }
  /// The long name, and others in similar tools.
  std::vector<std::string_view> names() const;

  Option also(std::string_view theirs) && {
    alias = theirs;
    return std::move(*this);
  }
  Option also(char theirs) && {
    alias_letter = theirs;
    return std::move(*this);
  }
  Option omitted_as(std::string_view word) && {
    otherwise = word;
    return std::move(*this);
  }
  Option tracing() && {
    traces = true;
    return std::move(*this);
  }
  Option adding_up() && {
    adds_up = true;
    return std::move(*this);
  }
};

/// An option of bcc or libbpf-tools that does not exist here: rejected, with the alternative.
struct Elsewhere {
  char letter;            ///< 0: none
  std::string_view name;  ///< long name; empty: none
  std::string_view instead;
};

/// A name of an option that means something else in bcc or libbpf-tools. It is accepted, and the
/// note is printed before tracing; other names of the option have no note. Without a letter and a
/// name: the tool does something else without these options.
struct OtherMeaning {
  char letter;            ///< 0: none
  std::string_view name;  ///< long name; empty: none
  std::string_view note;  ///< the meaning here, the one there, and the name that has no note
  When unless = {};       ///< options that make it unambiguous
};

/// A word on the command line without a dash, declared like an option.
struct Positional {
  std::string_view metavar;
  std::string doc;  ///< no full stop
  /// Required ones come before optional ones; only the last may be repeated.
  enum Repeat { required, optional, any_number, at_least_one } repeat = optional;
  std::function<Result<void>(Config&, std::string_view)> apply;
  Complete complete = Complete::nothing;
  std::string_view option = {};  ///< long name of the equivalent option: not both
  std::string otherwise = {};    ///< applied if neither is given; empty: nothing is

  bool repeats() const { return repeat == any_number || repeat == at_least_one; }
  bool needed() const { return repeat == required || repeat == at_least_one; }
};

/// A flag that sets a bool of the kernel program, or just its name in the configuration.
Option flag(char letter, std::string_view name, std::string_view doc, Setting target = {});

/// A number, stored in `target` times `unit`; `present` is set if it was given.
Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Setting target, std::uint64_t unit = 1, Setting present = {});
/// The same with bounds, in units.
struct Range {
  std::uint64_t least = 0, most = UINT64_MAX;
};
Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Range range, Setting target, std::uint64_t unit = 1, Setting present = {});
Option value(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::function<Result<void>(Config&, std::string_view)> apply,
             Complete complete = Complete::nothing);
/// Any text (Config::text), also stored where `place` says; if it may not be empty, `needs`:
/// "a file", for the error.
Option free_text(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
                 Complete complete = Complete::nothing, std::string_view needs = {},
                 std::function<std::string&(Config&)> place = {});
/// An address in hexadecimal, with or without 0x. `hint`: where to find it.
Option hex_address(char letter, std::string_view name, std::string_view metavar,
                   std::string_view doc, std::string_view hint, Setting target);
/// A list separated by commas; if given twice, both apply. `take` stores a part, or is false;
/// `what`: "ports", for the error.
Option comma_list(char letter, std::string_view name, std::string_view metavar,
                  std::string_view doc, std::function<bool(Config&, std::string_view)> take,
                  const std::string& what, const std::string& hint);

/// A word that an option takes.
struct Choice {
  std::string_view word;
  std::uint64_t number = 0;   ///< for `take`
  std::string_view doc = {};  ///< for completion
};
/// One of these words, which `take` stores.
Option choice(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              const std::vector<Choice>& words, void (*take)(Config&, std::uint64_t number));

/// An option whose values come from a closed list, for completion.
Option one_of(Option option, std::function<std::vector<Completion>()> words);

/// Several lists as one.
std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists);

/// Options without effect unless a condition holds: belonging_to("events", {...}), and
/// for those that cannot be combined with others: belonging_to("!index|unusable", {...}).
std::vector<Option> belonging_to(When condition, std::vector<Option> options);

/// Options with the same meaning in every tool that has them.
namespace shared {
Option pid(char letter = 'p');
Option tid(char letter = 't');
Option uid(char letter = 'u');
Option comm(char letter = 0);
/// A part of the command name; every tool that has comm() has it.
Option name(char letter = 0);
/// Every tool that has pid(), or comm(), has these.
Option not_pid();
Option not_comm();
/// Every tool that has cgroup() has these.
std::vector<Option> container_filters();
Option containers();  ///< every tool with id::cgroup among its fields has it
/// Only children of this process, for programs with bpf/lib/core/parent.bpf.h.
Option ppid(char letter, Setting wanted);
/// Only these system calls, by name: `wanted` has a
/// byte for each index, `some` is set if it applies.
Option syscalls(char letter, Setting wanted, Setting some);
/// File to write to instead of standard output.
Option output(char letter = 'o');
Option color();  ///< every tool has it
/// How words for targets are read, and the maximum number of probes.
Option regular_expressions(char letter = 'r');
Option max_probes();
Option debug(char letter = 'D');
Option cgroup(char letter = 'c');
/// cgroup('c'), for tools whose letter in bcc takes a number:
/// "-c 1" is rejected, with `option` as the alternative.
Option cgroup_not(std::string_view theirs, std::string_view option);
Option timestamp(char letter = 'T');
Option milliseconds(std::string_view doc = "histograms in milliseconds");
Option nanoseconds();
Option microseconds(std::string_view doc = "histograms in microseconds");
Option interval();
Option duration(char letter = 0);
/// Only this CPU: for perf events, and for programs with bpf/lib/core/cpu.bpf.h.
Option cpu(char letter);
/// How often perf events run their programs, instead of Hook::sampling; at most `most`
/// times per second on each CPU, and not above kernel.perf_event_max_sample_rate.
Option frequency(std::string_view doc, std::uint64_t most);
/// The same as counts of the event per sample; `least` is kLeastClockPeriod
/// or kLeastHardwarePeriod, `alias` the name in similar tools.
Option sample_period(char letter, std::string_view doc, std::uint64_t least,
                     std::string_view alias = "sample-period");
/// Completes the names of perf events.
Option of_perf_events(Option option);
/// The events that perf events sample, at most kMostEvents; for tools whose program has one for a
/// clock, and a hook for each further event (Hook::event). The tool calls the others when its
/// command line is checked and looked up.
inline constexpr std::size_t kMostEvents = 4;
Option sampled_event(char letter);
/// --ratio and --cpi: two events, and their ratio (StackReport::ratio_when). Its program then adds
/// up the periods of the samples.
std::vector<Option> event_ratio(Setting by_period);
Result<void> check_sampled_event(const Config& config);
Result<void> look_up_sampled_event(Config& config);
Option kernel_stack();
Option extended();
Option print_uid();
Option disk();
/// The same for tools that trace requests.
Option request_disk();
/// For tools on user functions; `alias` is the name in similar tools.
Option library(char letter, std::string_view alias = {});
Option symbols_prefix(char letter = 0);
/// For tools that probe returns of user functions.
Option return_trampoline();
Option stack_depth();
Option stack_storage(char letter = 0);
Option max_keys(char letter = 0);
Option max_events(char letter = 'M');
Option top(char letter = 0);
Option sort(char letter = 's');
/// Percentiles shown in reports (percentiles.hpp); `doc` includes the defaults.
Option percentiles(std::string_view doc);
Option overall();
/// Display of a report that redraws itself on a terminal: -C -r -s.
std::vector<Option> screen();
Option on_screen();  ///< for reports that do so only on request
Option csv(char letter = 0);
Option output_format();           ///< every tool has it
Option command(char letter = 0);  ///< one string instead of -- COMMAND
Option ipv4();
Option ipv6();
Option wide(char letter = 'w');
/// The connections to trace, for programs with bpf/lib/net/sock.bpf.h: lists and
/// ranges of ports, lists of addresses and prefixes, a network namespace.
Option local_ports(char letter = 'L', std::string_view name = "localport");
Option remote_ports(char letter = 'D', std::string_view name = "remoteport");
Option local_addresses(char letter = 0);
Option remote_addresses(char letter = 0);
Option netns();
/// All of them, and --ipv4 and --ipv6.
std::vector<Option> flow_filters(char local_port = 'L', char remote_port = 'D');

Option folded();
Option annotations(char letter);
Option svg();
Option color_by();
Option pprof();
/// For tools with histograms and intervals; the parser adds it.
Option heatmap();
Option by();
Option offset(char letter = 's');
/// For tools of events with stacks.
Option address(char letter = 0);

/// Method of walking user stacks.
Option unwind();
Option unwind_memory();

/// Display of stacks: -U -K -d -f -s, how they are walked, and how many are kept.
std::vector<Option> stacks(char annotations_letter = 0);
/// Tables and trees in place of the list of stacks; the parser adds them to reports of stacks.
std::vector<Option> stack_tables();
std::vector<Option> one_stack_only();  ///< -U -K alone
/// Those that are useful without user stacks.
std::vector<Option> kernel_stacks(char annotations_letter = 0);
/// For Tool::exclusive of tools that have them.
std::vector<std::pair<std::string_view, std::string_view>> stack_rules();
/// The same with reasons().
std::vector<std::pair<std::string_view, std::string_view>> off_cpu_rules();

/// Splits waits for a CPU (bpf/lib/sched/allowed_idle.bpf.h).
Option affinity(Setting on, Setting migration_cost);
template <class Rodata>
Option affinity() {
  return affinity(setting(&Rodata::affinity), setting(&Rodata::migration_cost_ns));
}
/// Selects waits off the CPU (bpf/lib/sched/offcpu.bpf.h).
template <class Rodata>
std::vector<Option> off_cpu() {
  return joined(
      {belonging_to("!kernel-threads-only", {flag('u', "user-threads-only", "no kernel threads",
                                                  setting(&Rodata::user_threads_only))
                                                 .also("useronly")}),
       {flag('k', "kernel-threads-only", "only kernel threads",
             setting(&Rodata::kernel_threads_only)),
        number('m', "min-block-time", "US", "only waits of at least US microseconds",
               setting(&Rodata::min_block_ns), 1000),
        number('M', "max-block-time", "US", "only waits of US microseconds or less",
               setting(&Rodata::max_block_ns), 1000),
        number(0, "state", "MASK",
               "only tasks that left in one of these states: 0 runnable, 1 interruptible, "
               "2 uninterruptible (1024: idle kernel threads), 3 both",
               setting(&Rodata::state_mask), 1, setting(&Rodata::state_on))}});
}
/// Selects reads and writes of files (bpf/lib/fs/file_io.bpf.h).
template <class Rodata>
Option all_files() {
  return flag('a', "all", "not only regular files: sockets, pipes, devices too",
              setting(&Rodata::all_files))
      .also("all-files");
}
template <class Rodata>
std::vector<Option> file_io() {
  return {all_files<Rodata>(),
          flag(0, "read-only", "only what is read", setting(&Rodata::reads_only)),
          flag(0, "write-only", "only what is written", setting(&Rodata::writes_only))};
}
/// Only files below this directory (Config::Places::directory).
Option directory(char letter);

/// For Tool::check.
/// For StackReport::with_reasons().
Option reasons();
Result<void> check_off_cpu(const Config& config);

/// INTERVAL and COUNT. `otherwise`: default INTERVAL in seconds; 0: one report at the end.
std::vector<Positional> interval_count(double otherwise = 0);
/// DURATION; `otherwise` is the default.
Positional duration_argument(std::string_view otherwise = {});
/// Words for targets; `otherwise` is the default.
Positional target_arguments(std::string_view otherwise = {}, std::string_view metavar = {},
                            std::string_view doc = {});
/// A number stored in `target` times `unit`: "runqslower 10000"; `otherwise` is the default.
Positional threshold(std::string_view metavar, std::uint64_t unit, std::string_view doc,
                     Setting target, std::string_view otherwise = {});

/// -p -t --comm --cgroup (and -u if the tool does not use the letter)
std::vector<Option> task_filters(bool uid_letter = true);
}  // namespace shared

}  // namespace coretap
