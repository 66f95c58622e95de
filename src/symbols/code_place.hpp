// Places within the functions of a file, to which a probe may be attached.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
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
/// Code by ELF addresses.
struct CodeRange {
  std::uint64_t start, size;
};
/// What describes the code at an address where no symbol does: its unwind information.
using DescribedAt = std::function<std::optional<CodeRange>(std::uint64_t address)>;
/// Of an address as the file's symbols have it. Without a symbol the function is named by its
/// address: "0x401615".
CodePlace place_at(int fd, const ElfSymbols& symbols, std::uint64_t address,
                   const DescribedAt& described = {});

}  // namespace coretap::symbols
