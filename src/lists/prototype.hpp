// C declarations of kernel functions and tracepoint arguments, from BTF.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kernel/btf.hpp"

namespace coretap {

/// Declares a variable, member, parameter or function of this type: "int (*run)(void *)",
/// "char *name". Without a name, only the type.
std::string declaration(const Btf& btf, std::uint32_t type, std::string name);

class Prototypes {
 public:
  /// The caller keeps `btf` valid. For a module's BTF, covers only types that its base lacks.
  explicit Prototypes(const Btf& btf);

  /// "int vfs_fsync(struct file *file, int datasync)"; empty: not known.
  std::string function(std::string_view name) const;
  /// "sched_switch(bool preempt, struct task_struct *prev)": the arguments for programs of type
  /// tracing; empty: no such tracepoint.
  std::string tracepoint(std::string_view name) const;

  /// Type ids of tracepoints, by name without the prefix of their types.
  const std::map<std::string_view, std::size_t>& tracepoints() const { return tracepoints_; }

 private:
  const Btf& btf_;
  std::map<std::string_view, std::size_t> functions_, tracepoints_;  ///< type ids
};

}  // namespace coretap
