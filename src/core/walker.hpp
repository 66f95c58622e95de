// Who walks user stacks: the loader's part of bpf/lib/walk.bpf.h. Tools only say "user stack".
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "core/session.hpp"
#include "coretap/symbols.hpp"

namespace coretap {

class StackWalker {
 public:
  virtual ~StackWalker() = default;
  /// Before load: what the kernel program must know.
  virtual void configure(Session&) {}
  /// After load.
  virtual Result<void> open(Session&) { return {}; }
  /// The kernel program tells of a process whose stacks it walks.
  virtual void meet(Session&, const stack_process&) {}
  /// As Reporter's functions of these names.
  virtual double poll_seconds() const { return 0; }
  virtual void poll(Session&) {}
  virtual std::vector<int> wakes() const { return {}; }
};

/// `by_tables`: there are user stacks, and the program can walk by unwind tables.
std::unique_ptr<StackWalker> make_walker(const Config& config, bool by_tables);

/// Why a walk ended before the place where the program or thread begins; empty: it did not.
std::string_view walk_cut(const stack& walked, const Symbol& outermost);

}  // namespace coretap
