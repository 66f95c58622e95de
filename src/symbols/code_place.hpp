// Places within the functions of a file, to which a probe may be attached.
#pragma once
#include <cstdint>
#include <string>

#include "symbols/elf_symbols.hpp"
#include "symbols/instructions.hpp"

namespace coretap::symbols {

struct CodePlace {
  enum State {
    found,
    nowhere,     ///< neither symbols nor frames say which function is there
    beyond,      ///< the function ends before
    inside,      ///< an instruction goes on there
    unreadable,  ///< an instruction before is not known, or the file is cut
  } state = nowhere;
  std::string function = {};
  std::uint64_t within = 0;  ///< from the function's begin on
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t size = 0;    ///< of the function
  InstructionAt instruction = {};
};

/// Of a function by the offset in the file where it begins.
CodePlace place_within(int fd, const ElfSymbols& symbols, std::uint64_t begin,
                       std::uint64_t within);
/// Of an address as the file's symbols have it, or in stripped files its frames (.eh_frame): a
/// function is then named by where it begins.
CodePlace place_at(int fd, const ElfSymbols& symbols, std::uint64_t address);

}  // namespace coretap::symbols
