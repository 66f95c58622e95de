// Names and lines of interpreted code, as the kernel program sends them when it first meets it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coretap/symbols.hpp"
#include "lib/stack/runtime.h"
#include "runtimes/hotspot_scopes.hpp"
#include "runtimes/read_budget.hpp"
#include "runtimes/v8.hpp"

namespace coretap::runtimes {

/// A frame of interpreted code. All texts come from the process: untrusted.
struct RuntimeFrame {
  std::string function;                            ///< empty: its name was not received
  std::string file;                                ///< as the program names it
  std::uint32_t line = 0;                          ///< 0: unknown
  bool shown = true;                               ///< false: code of the interpreter's own
  std::vector<symbols::SourceFrame> inlined = {};  ///< calls within it, innermost first
};

class CodeNames {
 public:
  /// Bytes of names and tables; above, the oldest are dropped.
  static constexpr std::size_t kMostBytes = 32 << 20;
  /// Bytes of Ruby's tables of lines that are read from processes in each second; of one.
  static constexpr std::size_t kMostRead = 8 << 20, kMostTable = 1 << 20;

  /// `read`: for lines that are only in the memory of a process; null: these are not known.
  explicit CodeNames(ReadMemory read = {}) : sources_(read), read_(std::move(read)) {}

  /// True if the record is about a code object.
  bool take(const void* record, std::size_t size);
  /// `word`: a frame with STACK_RUNTIME. Marks have a text in brackets as function.
  /// `exact`: it is an instruction, not a return address.
  RuntimeFrame find(std::uint64_t word, bool exact = false) const;
  std::size_t bytes() const { return bytes_; }

  /// For HotSpot's compiled code; asked when a record comes. Null: not known.
  std::function<std::shared_ptr<const InlinedMethods>(pid_t, const hotspot_code&)> inlined;

 private:
  struct Code {
    runtime_kind kind = RUNTIME_NONE;
    std::uint8_t minor = 0;
    bool ambiguous = false;  ///< two code objects have this number
    std::uint32_t first = 0;
    std::string function, file, lines;
    std::shared_ptr<const InlinedMethods> inlined = {};

    bool is_same(const Code& other) const {
      return kind == other.kind && minor == other.minor && first == other.first &&
             function == other.function && file == other.file && lines == other.lines;
    }
    std::size_t bytes() const {
      return sizeof(Code) + function.size() + file.size() + lines.size() +
             (inlined ? inlined->bytes() : 0);
    }
  };
  void drop_oldest();

  std::string ruby_lines(const runtime_code& from, std::string_view sent);

  SourceLines sources_;
  ReadMemory read_;
  ReadBudget budget_{kMostRead};
  std::unordered_map<std::uint64_t, Code> codes_;
  std::deque<std::uint64_t> order_;  ///< as they came
  std::size_t bytes_ = 0;
};

}  // namespace coretap::runtimes
