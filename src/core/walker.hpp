// Who walks user stacks: the loader's part of bpf/lib/walk.bpf.h. Tools only say "user stack".
#pragma once
#include <memory>
#include <string_view>

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
  /// A process' user stack was walked for the first time, or for the first time since exec.
  virtual void meet(Session&, const stack_process&) {}
  /// Why the walk ended before the place where the program or thread begins; empty: it did not.
  virtual std::string_view cut(const stack& walked, const Symbol& outermost) const = 0;
};

std::unique_ptr<StackWalker> make_walker(const Config& config);

}  // namespace coretap
