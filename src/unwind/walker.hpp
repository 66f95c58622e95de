// Walks user stacks: the loader's part of bpf/lib/stack/walk.bpf.h. Tools only request "user
// stack".
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "coretap/symbols.hpp"
#include "program/session.hpp"
#include "runtimes/code_names.hpp"

namespace coretap {

class StackWalker {
 public:
  virtual ~StackWalker() = default;
  /// Before load: sets the kernel program's variables.
  virtual void configure(Session&) {}
  /// After load, before anything is attached.
  virtual Result<void> ready(Session&) { return {}; }
  /// The kernel program has reported a process whose stacks it walks.
  virtual void meet(Session&, const stack_process&) {}
  /// True if the walker handles this other record.
  virtual bool take(const void*, std::size_t) { return false; }
  /// The image of its addresses (stack_image()), as far as it is known.
  virtual std::uint32_t image(const stack_process& process) const {
    return stack_image(process.program, 1);
  }
  /// The files that frames may refer to by number; null: all frames are addresses.
  virtual const symbols::NumberedFiles* files() const { return nullptr; }
  /// The names of interpreted code; null: no frame is of such code.
  virtual const runtimes::CodeNames* codes() const { return nullptr; }
  /// As the functions of these names in Reporter.
  virtual double poll_seconds() const { return 0; }
  virtual void poll(Session&) {}
  virtual std::vector<int> wakes() const { return {}; }

  /// Set by the code that resolves names. Called when addresses of a process have a new meaning.
  std::function<void(pid_t tgid, std::uint32_t image)> remapped;
};

/// The text for a walk that ended too early, and its explanation; by enum stack_end.
struct CutReason {
  stack_end end;
  std::string_view words;  ///< empty: it did not end early
  std::string_view meaning;
};
const std::array<CutReason, STACK_ENDS>& cut_reasons();

/// Why a walk ended before the start of the program or thread; empty: it did not.
std::string_view walk_cut(const stack& walked, const Symbol& outermost);

}  // namespace coretap
