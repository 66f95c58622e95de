// Questions to the running kernel. Decisions are made by what it says, never by its version.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "coretap/result.hpp"
#include "kernel/btf.hpp"

namespace coretap {

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  bool has_btf();
  int types_error() const { return types_error_; }  ///< errno, where it has no BTF
  /// Arguments of a tracepoint's prototype; -1: no such tracepoint.
  int tracepoint_args(std::string_view tracepoint);
  bool has_function(std::string_view function);
  /// What a program of type tracing names to attach to; 0: this kernel does not have it.
  std::uint32_t tracepoint_type(std::string_view tracepoint);
  std::uint32_t function_type(std::string_view function);
  /// The same of a module's function; its types: module_object().
  std::uint32_t function_type(std::string_view function, std::string_view module);
  bool has_field(std::string_view type, std::string_view member);
  bool has_enumerator(std::string_view type, std::string_view name);
  /// Names and values of an enum; empty if this kernel has none of that name.
  std::vector<std::pair<std::string, std::int64_t>> enumerators(std::string_view type);

  /// Empty: allowed. Otherwise why a program on a function's entry is refused; found out by loading
  /// one.
  const std::string& fentry_refusal();
  const std::string& kprobe_refusal(std::string_view function);
  /// The same of one link to many functions; found out by making one.
  const std::string& kprobe_multi_refusal();
  /// Does it have the instruction that writes memory and returns what was there? Found out by
  /// loading one.
  bool has_exchange();
  /// Type ids of structures; 0: none of that name.
  std::vector<std::uint32_t> structures(const std::vector<std::string_view>& names);
  /// By what programs make addresses pointers of a type.
  struct Casts {
    std::uint32_t function = 0;          ///< type id of bpf_rdonly_cast; 0: they cannot call it
    std::vector<std::uint32_t> to = {};  ///< type ids; 0: no such structure
  };
  /// To these structures. Found out by loading a program.
  Casts casts(const std::vector<std::string_view>& names);

  /// The same of the unnamed enum that has this enumerator.
  std::vector<std::pair<std::string, std::int64_t>> enumerators_beside(std::string_view name);

  /// All types; closed if there are none.
  const Btf& all_types();
  /// Those of a module, with the kernel's as their base; closed if there are none.
  const Btf& types_of(std::string_view module);
  /// A descriptor of the kernel's own object with the types of a module, looked for once; it asks
  /// for CAP_SYS_ADMIN.
  Result<int> module_object(std::string_view module);
  void close_module_objects() { module_objects_.clear(); }
  /// Gives the memory of the type information back.
  void release();

 private:
  bool types();  ///< loaded on the first question
  const btf_type* tracepoint_prototype(std::string_view tracepoint);

  Btf btf_;
  std::map<std::string, Btf, std::less<>> modules_;  ///< by name, once they are asked for
  std::map<std::string, Result<Fd>, std::less<>> module_objects_;
  bool tried_ = false;
  int types_error_ = 0;
  std::optional<std::string> fentry_, kprobe_, kprobe_multi_;
  std::optional<bool> exchange_;
  std::string kprobe_function_;
};

/// Modules whose types the kernel has, which it can since 5.11 (36e68442d1af).
std::vector<std::string> modules_with_types();

/// Type of the perf events of "kprobe" or "uprobe".
Result<std::uint32_t> probe_event_type(std::string_view kind);

std::string lockdown();        ///< "none", "integrity", "confidentiality", "" if not built in
std::string kernel_release();  ///< uname -r
/// Fails where the lists of CPUs cannot be read; the functions below then know CPU 0 only.
Result<void> read_cpus();
int possible_cpus();
/// As the list said when it could be read for the last time.
std::vector<int> online_cpus();
/// Of a list such as "0-3,8"; what is not a number is left out.
std::vector<int> parse_cpus(std::string_view list);
std::uint64_t max_tasks();  ///< how many threads there can be

/// A directory with tracefs, mounted for this process alone if it is mounted nowhere.
Result<int> tracefs();
/// Those that tracefs offers to tracers, "category:name", in alphabetical order.
Result<std::vector<std::string>> tracepoint_names();
/// What tracefs says of a tracepoint in one of its files, such as "id" or "format".
Result<std::string> tracepoint_file(std::string_view category, std::string_view name,
                                    std::string_view file);
Result<int> tracepoint_id(std::string_view category, std::string_view name);

/// Where the version 2 hierarchy is mounted (also beside version 1).
Result<std::string> cgroup2_mount();
/// The directory of a cgroup: its path, or its path below that mount.
Result<std::string> cgroup_directory(std::string_view path);
/// The id that the kernel uses for a cgroup given as path or number.
Result<std::uint64_t> cgroup_id(std::string_view path_or_id);
/// Is the root of the mounted hierarchy the kernel's own?
bool in_first_cgroup_namespace();

}  // namespace coretap
