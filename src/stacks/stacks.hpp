// Stacks as text, folded and JSON; symbols are looked up only when a stack is printed.
#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/recall.hpp"
#include "coretap/fields.hpp"
#include "coretap/json.hpp"
#include "coretap/symbols.hpp"
#include "lib/core/shared.h"
#include "runtimes/code_names.hpp"
#include "stacks/frame_lines.hpp"
#include "stacks/stack_word.hpp"

namespace coretap {

/// Adds the frames of a user stack, which may be stored in parts. False: an outer part is missing.
bool add_parts(stack part, const std::function<bool(std::uint64_t key, stack& to)>& stored,
               std::vector<std::uint64_t>& frames);

class Stacks {
 public:
  struct Style {
    bool offsets = false;    ///< within functions
    bool modules = false;    ///< after the names of user functions, in parentheses
    bool places = false;     ///< "function+0x1f [module]", also for kernel functions
    bool addresses = false;  ///< before each: in memory of the kernel's functions, else in the file
    bool located = false;    ///< stores the locations of frames (FramePlace)
    bool lines = false;      ///< source lines and inlined functions; includes `located`
    bool interpreted_only = false;  ///< of user stacks that have such frames, only these
  };
  explicit Stacks(Style style) : style_(style), kernel_(std::make_unique<KernelSymbols>()) {
    if (style.lines) lines_ = std::make_unique<FrameLines>();
  }

  bool keeps_places() const { return style_.located || style_.lines; }
  /// Leaf first, in the order of the kernel's walk. *places: of these frames.
  Frames kernel(const stack& s, std::vector<FramePlace>* places = nullptr);
  /// Why kernel functions have no names, if they have none; returned once.
  std::optional<Error> take_kernel_failure();
  /// Users whose functions get no names from now on, as their files take too long to read; once.
  std::vector<uid_t> take_given_up() {
    return user_ ? user_->take_given_up() : std::vector<uid_t>();
  }
  /// True once if the rest of the frames has no source lines, as their files take too long to read.
  bool take_lines_given_up() { return lines_ && lines_->take_given_up(); }
  /// For frames that are numbers instead of addresses; null: there are none.
  struct Numbered {
    const symbols::NumberedFiles* files = nullptr;
    const runtimes::CodeNames* codes = nullptr;
  };
  /// All parts of a user stack; `image` as in struct stack.
  struct UserStack {
    std::span<const std::uint64_t> frames;
    std::uint32_t image = 0;
  };
  /// *outermost: the symbol of the last frame.
  Frames user(pid_t tgid, const UserStack& s, const Numbered& numbered, Symbol* outermost = nullptr,
              std::vector<FramePlace>* places = nullptr);

  /// The process is alive now, but may have ended when its symbols are needed.
  void remember(pid_t tgid, pid_t forked_from, std::uint32_t image, std::uint64_t stack_begin) {
    if (replaying()) return;
    user_symbols().remember(tgid, forked_from, image, stack_begin);
  }

 private:
  UserSymbols& user_symbols();
  Symbol user_symbol(pid_t tgid, const UserStack& s, std::uint32_t frame, const Numbered& numbered);
  std::string word(const Symbol& symbol, bool user, std::uint64_t address) const;
  void add_interpreted(Frames& frames, std::vector<FramePlace>* places, const Symbol& symbol) const;
  void add_inlined(Frames& frames, std::vector<FramePlace>* places, FrameLines::Found& found,
                   const Symbol& symbol) const;

  Style style_;
  std::unique_ptr<KernelSymbols> kernel_;
  bool kernel_failure_taken_ = false;
  std::unique_ptr<UserSymbols> user_;
  std::unique_ptr<FrameLines> lines_;  ///< null: not wanted
};

}  // namespace coretap
