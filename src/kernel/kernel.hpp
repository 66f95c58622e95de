// Queries of the running kernel's features. Decisions rest on these, never on its version.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/kernel.hpp"
#include "coretap/result.hpp"
#include "kernel/btf.hpp"

namespace coretap {

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  bool has_btf();
  int types_error() const { return types_error_; }  ///< errno if the kernel has no BTF
  /// Number of arguments in a tracepoint's prototype; -1: no such tracepoint.
  int tracepoint_args(std::string_view tracepoint);
  bool has_function(std::string_view function);
  /// attach_btf_id for a program of type tracing; 0: this kernel does not have it.
  std::uint32_t tracepoint_type(std::string_view tracepoint);
  std::uint32_t function_type(std::string_view function);
  /// The same for a module's function; module_object() has the BTF that it refers to.
  std::uint32_t function_type(std::string_view function, std::string_view module);
  bool has_field(std::string_view type, std::string_view member);
  bool has_enumerator(std::string_view type, std::string_view name);
  /// Names and values of an enum; empty if this kernel has no enum of that name.
  std::vector<std::pair<std::string, std::int64_t>> enumerators(std::string_view type);

  /// Empty if fentry programs can be loaded, otherwise the reason why not; tested by loading
  /// one.
  const std::string& fentry_refusal();
  const std::string& kprobe_refusal(std::string_view function);
  /// The same for one kprobe link to many functions; tested by creating one.
  const std::string& kprobe_multi_refusal();
  /// True if BPF has the instruction that writes memory and returns the old value; tested by
  /// loading one.
  bool has_exchange();
  /// How tracing programs turn preemption off. All 0: not, or they need not.
  struct Preemption {
    std::uint32_t disable = 0, enable = 0;  ///< type ids of the kernel's functions
    bool at_tracepoints = false;            ///< tracepoints do not do it themselves
  };
  /// `at_functions`: also asked for programs at functions.
  Preemption preemption(bool at_functions);
  /// Type ids of structures; 0: no structure of that name.
  std::vector<std::uint32_t> structures(const std::vector<std::string_view>& names);
  /// How programs convert addresses to pointers of a type.
  struct Casts {
    std::uint32_t function = 0;          ///< type id of bpf_rdonly_cast; 0: programs cannot call it
    std::vector<std::uint32_t> to = {};  ///< type ids; 0: no such structure
  };
  /// Casts to these structures. Tested by loading a program.
  Casts casts(const std::vector<std::string_view>& names);

  /// The same for the unnamed enum that has this enumerator.
  std::vector<std::pair<std::string, std::int64_t>> enumerators_beside(std::string_view name);

  /// The kernel's types; closed if there are none.
  const Btf& all_types();
  /// A module's types, with the kernel's as their base; closed if there are none.
  const Btf& types_of(std::string_view module);
  /// A descriptor of the kernel's BTF object for a module, cached; getting it requires
  /// CAP_SYS_ADMIN.
  Result<int> module_object(std::string_view module);
  void close_module_objects() { module_objects_.clear(); }
  /// Frees the memory of the type information.
  void release();

 private:
  bool types();  ///< loads the types on first use
  Btf::Enumerators enumerators_of_type(std::string_view type);
  const btf_type* tracepoint_prototype(std::string_view tracepoint);

  Btf btf_;
  std::map<std::string, Btf, std::less<>> modules_;  ///< by name, loaded on first use
  std::map<std::string, Result<Fd>, std::less<>> module_objects_;
  bool tried_ = false;
  int types_error_ = 0;
  std::optional<std::string> fentry_, kprobe_, kprobe_multi_;
  std::optional<bool> exchange_;
  std::string kprobe_function_;
};

/// Modules whose types the kernel provides (since 5.11, 36e68442d1af).
std::vector<std::string> modules_with_types();

/// Perf event type (attr.type) of "kprobe" or "uprobe".
Result<std::uint32_t> probe_event_type(std::string_view kind);

std::string lockdown();        ///< "none", "integrity", "confidentiality", "" if not built in
std::string kernel_release();  ///< uname -r
/// Fails if the lists of CPUs cannot be read; the functions below then return CPU 0 only.
Result<void> read_cpus();
/// The NUMA node of each CPU, including offline CPUs; -1: not known.
std::vector<int> nodes_of_cpus(int cpus, const std::string& directory = "/sys/devices/system/node");
std::uint64_t max_tasks();  ///< maximum number of threads

/// A descriptor of a tracefs directory; if it is mounted nowhere, mounts it for this process alone.
Result<int> tracefs();
/// Tracepoints that tracefs lists, as "category:name", in alphabetical order.
Result<std::vector<std::string>> tracepoint_names();
Result<int> tracepoint_id(std::string_view category, std::string_view name);

struct Mount {
  std::string directory, type;
  std::string options;  ///< of the file system
};
/// The lines of /proc/self/mountinfo.
std::vector<Mount> mounts_in(std::string_view mountinfo);

/// Mount point of cgroup v2 (also beside version 1).
Result<std::string> cgroup2_mount();
/// The directory of a cgroup: its path, or its path relative to that mount.
Result<std::string> cgroup_directory(std::string_view path);
/// The kernel's id of a cgroup given as path or number.
Result<std::uint64_t> cgroup_id(std::string_view path_or_id);
/// True in the initial cgroup namespace: the mounted hierarchy's root is the kernel's root.
bool in_first_cgroup_namespace();

}  // namespace coretap
