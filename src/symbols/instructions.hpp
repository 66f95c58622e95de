// Where instructions begin: a probe between two beginnings would change the program.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace coretap::symbols {

using CodeBytes = std::span<const std::uint8_t>;

/// Bytes of the instruction at the beginning of `code`; 0: it is not known, or not whole.
std::size_t instruction_bytes(CodeBytes code);

/// Which instruction a place is in, if one begins at 0.
struct InstructionAt {
  bool known = false;     ///< all instructions up to there are
  std::size_t begin = 0;  ///< the place itself, if an instruction begins there
  std::size_t end = 0;
};
InstructionAt instruction_at(CodeBytes code, std::size_t place);

}  // namespace coretap::symbols
