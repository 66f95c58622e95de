// Names and lines of interpreted code, as the kernel program sends them when it first meets it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "lib/stack/runtime.h"
#include "runtimes/v8.hpp"

namespace coretap::runtimes {

/// A frame of interpreted code. All texts come from the process: untrusted.
struct RuntimeFrame {
  std::string function;    ///< empty: its name was not received
  std::string file;        ///< as the program names it
  std::uint32_t line = 0;  ///< 0: unknown
  bool shown = true;       ///< false: code of the interpreter's own
};

class CodeNames {
 public:
  /// Bytes of names and tables; above, the oldest are dropped.
  static constexpr std::size_t kMostBytes = 32 << 20;

  /// `read`: for lines that are only in the memory of a process; null: these are not known.
  explicit CodeNames(ReadMemory read = {}) : sources_(std::move(read)) {}

  /// True if the record is about a code object.
  bool take(const void* record, std::size_t size);
  /// `word`: a frame with STACK_RUNTIME. Marks have a text in brackets as function.
  RuntimeFrame find(std::uint64_t word) const;
  std::size_t bytes() const { return bytes_; }

 private:
  struct Code {
    runtime_kind kind = RUNTIME_NONE;
    std::uint8_t minor = 0;
    bool ambiguous = false;  ///< two code objects have this number
    std::uint32_t first = 0;
    std::string function, file, lines;

    bool operator==(const Code&) const = default;
    std::size_t bytes() const {
      return sizeof(Code) + function.size() + file.size() + lines.size();
    }
  };
  void drop_oldest();

  SourceLines sources_;
  std::unordered_map<std::uint64_t, Code> codes_;
  std::deque<std::uint64_t> order_;  ///< as they came
  std::size_t bytes_ = 0;
};

}  // namespace coretap::runtimes
