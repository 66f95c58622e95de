// Where instructions begin, as a probe between two beginnings would change the program, and where
// they lead to. Sources: Intel SDM volume 2, appendix A; Arm ARM, chapter C4.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace coretap::symbols {

using CodeBytes = std::span<const std::uint8_t>;

/// Bytes of the instruction at the beginning of `code`; 0: it is not known, or not whole.
std::size_t instruction_bytes(CodeBytes code);

/// Where control goes from an instruction.
struct Flow {
  enum Kind : std::uint8_t {
    next,      ///< to the next one
    call,      ///< to the next one once the callee has returned, if it does
    branch,    ///< to the next one or to `target`
    jump,      ///< to `target`
    by_table,  ///< to one of several places of the same function
    indirect,  ///< to where a register or memory says: of the function, or another one
    returns,
    ends,     ///< nowhere: it traps
    unknown,  ///< no instruction that compilers write, or it is not whole
  } kind = unknown;
  std::size_t bytes = 0;    ///< of the instruction
  std::int64_t target = 0;  ///< from its begin on
  /// Of `indirect`: the register that it jumps to; of `next`: the one that a sum was left in. -1:
  /// none. Tables of switch statements have distances, which are added to an address.
  int address_in = -1;
};
Flow flow_of(CodeBytes code);
/// Of a stub that jumps to the address in a word: where that is, from the stub's begin on.
std::optional<std::int64_t> jump_by_word(CodeBytes stub);

/// Which instruction a place is in, if one begins at 0.
struct InstructionAt {
  bool known = false;     ///< all instructions up to there are
  std::size_t begin = 0;  ///< the place itself, if an instruction begins there
  std::size_t end = 0;
};
InstructionAt instruction_at(CodeBytes code, std::size_t place);

}  // namespace coretap::symbols
