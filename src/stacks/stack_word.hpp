// An element of the path that leads to a sum: a frame, a name, or a mark.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

struct CodeFile;

/// Details of a frame beside its text.
struct FramePlace {
  std::string function;                       ///< without offsets and modules; empty: unknown
  std::string linkage_name = {};              ///< the linker's name; empty: the same as `function`
  std::shared_ptr<const CodeFile> file = {};  ///< null: not in a file, or in the kernel
  std::optional<std::uint64_t> at = {};       ///< offset in that file
  std::string object = {};                    ///< as Symbol::module; empty: unknown
  bool compiled = false;                      ///< as Symbol::compiled
  bool inlined = false;                       ///< part of the function that called it
  bool interpreted = false;                   ///< as Symbol::interpreted
  std::string source = {};                    ///< its file; empty: unknown
  std::uint32_t line = 0;                     ///< in that file
};

/// The kinds of code that a frame may be.
enum class FrameCode : std::uint8_t {
  unknown,
  program,
  library,
  compiled,
  inlined,
  interpreted,
  kernel
};

struct StackWord {
  enum Kind : std::uint8_t {
    task,
    user,
    kernel,
    mark,
    // States of threads, a color for each.
    cpu,
    queue,
    limit,
    disk,
    memory,
    lock,
    peer,
    work,
    other
  } kind = task;
  bool waker = false;                 ///< belongs to a waker
  std::string text;                   ///< untrusted: may contain anything
  const FramePlace* place = nullptr;  ///< null: unknown, or not a frame
};

/// `unknown` if it is no frame, or its place is not known.
FrameCode code_of(const StackWord& word);
/// The end of the name in folded stacks, as FlameGraph's scripts have it: "_[k]"; or nothing.
std::string_view annotation_of(FrameCode code);
/// Removes it.
FrameCode take_annotation(std::string_view& name);

/// The file of a frame's code as tables show it: without its directories; "[kernel]", "[ext4]".
std::string object_of(const FramePlace& place, bool kernel);

/// The first bytes of a name, cut at a character boundary.
inline std::string_view start_of_name(std::string_view name, std::size_t most) {
  if (name.size() <= most) return name;
  auto end = most;
  while (end > most - 4 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) end--;
  return name.substr(0, end);
}

}  // namespace coretap
