// A part of the path that leads to a sum: a frame, a name, or a mark.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace coretap {

struct CodeFile;

/// What is known of a frame beside its text.
struct FramePlace {
  std::string function;                       ///< without offsets and modules; empty: not known
  std::string linkage_name = {};              ///< as the linker knows it; empty: `function` is that
  std::shared_ptr<const CodeFile> file = {};  ///< null: in none, or the kernel's
  std::optional<std::uint64_t> at = {};       ///< where in that file
};

struct StackWord {
  enum Kind : std::uint8_t { task, user, kernel, mark } kind = task;
  bool waker = false;                 ///< belongs to one that woke another
  std::string text;                   ///< from outside: may be anything
  const FramePlace* place = nullptr;  ///< null: not known, or no frame
};

}  // namespace coretap
