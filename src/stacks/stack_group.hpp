// Groups that sums by stack are added up in, instead of single processes (--by).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/schema.hpp"
#include "program/session.hpp"
#include "stacks/stack_layout.hpp"

namespace coretap {

class StackGroup {
 public:
  /// Fails if it is not one of the keys.
  static Result<void> check(const Config& config);
  /// "comm, pid, ...", for documentation.
  static std::string words();

  /// Before load: where the kernel program has to store cgroups, says so.
  void configure(Session& s);
  bool chosen() const { return kind_ != none; }
  std::string_view word() const;
  /// The name of the group of a task, which then replaces the task's own.
  std::string name(const Session& s, const StackParty& party) const;

 private:
  enum Kind { none, comm, pid, tid, object, caller, cgroup, container, pod, unit };
  struct Word;
  static const Word kWords[];

  Kind kind_ = none;
};

}  // namespace coretap
