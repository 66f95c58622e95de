// Line number programs (DWARF 5 section 6.2).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "symbols/debug_forms.hpp"

namespace coretap::symbols {

class LineProgram {
 public:
  /// Code in [begin, end) is of `line` of a file; false: stop.
  using OnRow = std::function<bool(std::uint64_t begin, std::uint64_t end, std::uint64_t file,
                                   std::uint64_t line)>;

  /// Reads the program at this offset of .debug_line; false: it is damaged.
  bool read(DebugData& data, const DebugUnit& unit, std::uint64_t offset, std::string directory);
  /// Runs it; false: it is damaged.
  bool run(const OnRow& row);
  /// The path of a file; empty: there is none of this number.
  std::string path(std::uint64_t file);

 private:
  struct File {
    DebugValue name;
    std::uint64_t directory = 0;
  };
  bool old_names(Bytes& header);
  bool names(Bytes& header, std::vector<File>& to);
  std::string text(const DebugValue& value) {
    return text_of(*data_, unit_, value, bytes_, begin_);
  }

  DebugData* data_ = nullptr;
  DebugUnit unit_;  // with the sizes of this program
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> bytes_;  // of the whole program, from `begin_` on
  std::size_t instructions_ = 0;     // in them
  std::string directory_;
  std::vector<File> directories_, files_;
  std::uint8_t step_ = 1, range_ = 1, opcode_base_ = 1;
  std::int8_t line_base_ = 0;
  std::vector<std::uint8_t> arguments_;
};

}  // namespace coretap::symbols
