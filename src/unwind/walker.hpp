// Who walks user stacks: the loader's part of bpf/lib/walk.bpf.h. Tools only say "user stack".
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "coretap/symbols.hpp"
#include "program/session.hpp"

namespace coretap {

class StackWalker {
 public:
  virtual ~StackWalker() = default;
  /// Before load: what the kernel program must know.
  virtual void configure(Session&) {}
  /// After load, before anything is attached.
  virtual Result<void> ready(Session&) { return {}; }
  /// The kernel program reports a process whose stacks it walks.
  virtual void meet(Session&, const stack_process&) {}
  /// Another record: is it the walker's?
  virtual bool take(const void*, std::size_t) { return false; }
  /// What its addresses mean, as far as is known.
  virtual std::uint32_t image(const stack_process& process) const {
    return STACK_IMAGE(process.program, 1);
  }
  /// Those that frames may be in by number; null: all frames are addresses.
  virtual const symbols::NumberedFiles* files() const { return nullptr; }
  /// As Reporter's functions of these names.
  virtual double poll_seconds() const { return 0; }
  virtual void poll(Session&) {}
  virtual std::vector<int> wakes() const { return {}; }

  /// Set by who asks for names: a process' addresses mean something else, or more, from now on.
  std::function<void(pid_t tgid, std::uint32_t image)> remapped;
};

/// How a walk that ended too early is marked, and what that means; by enum stack_end.
struct CutReason {
  stack_end end;
  std::string_view words;  ///< empty: it did not
  std::string_view meaning;
};
const std::array<CutReason, STACK_ENDS>& cut_reasons();

/// Why a walk ended before the place where the program or thread begins; empty: it did not.
std::string_view walk_cut(const stack& walked, const Symbol& outermost);

}  // namespace coretap
