// Unwind rules of Go's assembler functions, from their instructions: Go's tables lack where
// registers are saved, and where the stack changes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/stack/unwind.h"

namespace coretap::unwind {

/// From an address on, a function has this many bytes on the stack above its return address.
struct GoStep {
  std::uint64_t address = 0;
  std::int64_t delta = 0;
};

struct GoRow {
  std::uint64_t address = 0;
  unwind_rule rule{};
};

/// The rule for a compiled function's frame.
unwind_rule go_rule(std::int64_t delta);
/// The same on arm64, for those written in assembler, too: the return address is the first word of
/// the frame, x29 is saved below it (Go's abi-internal.md, "arm64 architecture").
unwind_rule go_rule_of_arm64(std::int64_t delta);

/// Appends the rows of the function whose code begins at the first step's address. `switches`: it
/// may set the stack pointer to another stack; `after`: the rule where its own frame is lost then.
void read_go_code(std::span<const std::uint8_t> code, std::span<const GoStep> steps, bool switches,
                  const unwind_rule& after, std::vector<GoRow>& rows);

}  // namespace coretap::unwind
