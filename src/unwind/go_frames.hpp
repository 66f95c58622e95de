// Unwind rules of Go programs, from the table that Go's runtime has for its own stack traces
// (.gopclntab): the size of each function's frame at each of its instructions.
#pragma once
#include <cstdint>
#include <memory>

#include "cfi/elf_code.hpp"
#include "unwind/go_code.hpp"

namespace coretap::unwind {

/// Reads in pieces; hostile files have bounded numbers of functions, values and rows. Stripped
/// files have this table, too. None of Go's assembler or its linker writes CFI that is loaded.
class GoFrames {
 public:
  GoFrames(const Image& image, const ElfCode& elf);
  ~GoFrames();
  GoFrames(const GoFrames&) = delete;
  GoFrames& operator=(const GoFrames&) = delete;

  /// The next row; null: no more. Addresses ascend. UNWIND_NONE: from there on the table has
  /// nothing. Valid until pop().
  const GoRow* peek();
  void pop();

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;  // null: the file has no such table
};

}  // namespace coretap::unwind
