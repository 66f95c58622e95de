// Puts instructions that were made of the command line's expressions into a kernel program
// (bpf/lib/expression.bpf.h), in the place of instructions that do nothing.
#pragma once
#include <linux/bpf.h>

#include <span>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

struct Pads {
  std::vector<bpf_insn> filter, output;

  bool empty() const { return filter.empty() && output.empty(); }
  /// It needs no stack and little room: no function is called for it, whose return costs more than
  /// most filters.
  bool filter_is_short() const;
};

/// Fails where there are more instructions than have room.
Result<void> check_pads(const Pads& pads);

/// In a program that is about to be loaded.
void fill_pads(std::span<bpf_insn> code, const Pads& pads);

}  // namespace coretap
