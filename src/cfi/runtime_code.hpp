// Code that no file describes: .init, .fini, gcc's crtstuff, the linkage tables of some linkers.
#pragma once
#include <cstdint>
#include <span>

#include "cfi/row.hpp"

namespace coretap::unwind {

/// Looks for functions of that code in bytes that lie at `address` and have no CFI. They are known
/// by how they begin, and are followed instruction by instruction: few kinds occur. Calls back with
/// rows, ascending; the last of each function has UNWIND_NONE.
void read_runtime_code(std::span<const std::uint8_t> code, std::uint64_t address, const OnRow& row);

}  // namespace coretap::unwind
