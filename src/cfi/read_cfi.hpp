// Converts call frame information (.eh_frame; System V ABI AMD64, DWARF 5 section 6.4) to unwind
// rules.
#pragma once
#include "cfi/elf_code.hpp"
#include "cfi/row.hpp"

namespace coretap::unwind {

/// Calls back for each change of the rule: addresses are ascending and unique, and neighbours have
/// different rules; a row with UNWIND_NONE ends each gap and the table. Code of the C runtime
/// without CFI in any file (.init, .fini, crtstuff) is recognized by its bytes. False: the file has
/// no readable CFI (rows may have been passed before that was found). Reads in pieces: uses at most
/// a megabyte at any time. `function`: called for each FDE, of a function or of a separate part of
/// one.
using OnFunction = std::function<void(std::uint64_t begin, std::uint64_t end)>;
bool read_cfi(const Image& image, const ElfCode& elf, const OnRow& row,
              const OnFunction& function = {});

}  // namespace coretap::unwind
