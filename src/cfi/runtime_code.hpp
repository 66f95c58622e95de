// Code that has no CFI: .init, .fini, gcc's crtstuff, the PLTs of some linkers; on arm64 all PLTs.
#pragma once
#include <cstdint>
#include <span>

#include "cfi/row.hpp"

namespace coretap::unwind {

/// Looks for such functions in bytes at `address` that have no CFI. They are recognized by their
/// first bytes and interpreted instruction by instruction: few kinds occur. Calls back with rows,
/// ascending; the last one of each function has UNWIND_NONE.
void read_runtime_code(std::span<const std::uint8_t> code, std::uint64_t address, const OnRow& row);

/// The same for code of arm64: whatever it is, where it saves the link register is recognized.
/// Where the stack pointer changes in another way, nothing is known up to the next function. That
/// of the vdso is searched, too.
void read_arm64_code(std::span<const std::uint8_t> code, std::uint64_t address, const OnRow& row);

}  // namespace coretap::unwind
