// Puts instructions that were made of the command line's expressions into a kernel program
// (bpf/lib/expression.bpf.h), in the place of instructions that do nothing.
#pragma once
#include <linux/bpf.h>

#include <vector>

#include "coretap/result.hpp"

struct bpf_program;

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

/// While the program is loaded: as libbpf is about to hand its instructions to the kernel.
void fill_pads(bpf_program* program, const Pads& pads);

}  // namespace coretap
