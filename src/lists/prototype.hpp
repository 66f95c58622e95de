// Functions of the kernel and arguments of tracepoints as C declares them, from BTF.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kernel/btf.hpp"

namespace coretap {

/// A variable, member, parameter or function of this type: "char *name", "int (*run)(void *)".
/// Without a name the type alone.
std::string declaration(const Btf& btf, std::uint32_t type, std::string name);

class Prototypes {
 public:
  /// `btf` stays the caller's. Of a module's, only what its base does not have.
  explicit Prototypes(const Btf& btf);

  /// "int vfs_fsync(struct file *file, int datasync)"; empty: not known.
  std::string function(std::string_view name) const;
  /// "sched_switch(bool preempt, struct task_struct *prev)": the arguments that programs of type
  /// tracing get; empty: there is no such tracepoint.
  std::string tracepoint(std::string_view name) const;

  /// Of tracepoints, by the names without the prefix that their types have.
  const std::map<std::string_view, std::size_t>& tracepoints() const { return tracepoints_; }

 private:
  const Btf& btf_;
  std::map<std::string_view, std::size_t> functions_, tracepoints_;  ///< type ids
};

}  // namespace coretap
