// Locations within functions of a file, for attaching probes.
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
    nowhere,     ///< neither symbols nor unwind information have a function there
    beyond,      ///< the function ends before it
    inside,      ///< it is within an instruction
    unreadable,  ///< an earlier instruction is unknown, or the file is truncated
  } state = nowhere;
  std::string function = {};
  std::uint64_t within = 0;  ///< offset from the function's start
  std::uint64_t offset = 0;  ///< offset in the file
  std::uint64_t size = 0;    ///< size of the function
  InstructionAt instruction = {};
};

/// Location in a function that starts at this offset in the file.
CodePlace place_within(int fd, const ElfSymbols& symbols, std::uint64_t begin,
                       std::uint64_t within);
/// The instruction that is probed at the entry of a function.
struct EntryPlace {
  std::uint64_t offset = 0;  ///< in the file
  EntryStep::Form form = EntryStep::stepped;
};
/// A range of code, in ELF addresses.
struct CodeRange {
  std::uint64_t start, size;
};
/// Finds the range of code at an address without a symbol, from unwind information.
using DescribedAt = std::function<std::optional<CodeRange>(std::uint64_t address)>;
/// Location of an ELF address. Without a symbol the function is named by its address:
/// "0x401615".
CodePlace place_at(int fd, const ElfSymbols& symbols, std::uint64_t address,
                   const DescribedAt& described = {});

}  // namespace coretap::symbols
