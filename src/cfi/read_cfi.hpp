// Call frame information (.eh_frame; System V ABI AMD64, DWARF 5 section 6.4) as rules to walk by.
#pragma once
#include "cfi/elf_code.hpp"
#include "cfi/row.hpp"

namespace coretap::unwind {

/// Calls back for each change of the rule, addresses ascending, no two equal, no two neighbours
/// with the same rule; a row with UNWIND_NONE closes each gap and the end. Code of the C runtime
/// that no file describes (.init, .fini, crtstuff) is known by its bytes. False: the file has no
/// CFI that can be read (rows may have come before that was found). Reads in pieces: takes at most
/// a megabyte at any time. `function`: for each description, of a function or a part of it that
/// lies elsewhere.
using OnFunction = std::function<void(std::uint64_t begin, std::uint64_t end)>;
bool read_cfi(const Image& image, const ElfCode& elf, const OnRow& row,
              const OnFunction& function = {});

}  // namespace coretap::unwind
