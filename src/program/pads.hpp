// Inserts instructions compiled from the command line's expressions into a kernel program
// (bpf/lib/targets/expression.bpf.h), over instructions that do nothing.
#pragma once
#include <linux/bpf.h>

#include <span>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

struct Pads {
  std::vector<bpf_insn> filter, output;

  bool empty() const { return filter.empty() && output.empty(); }
  /// It uses no stack and fits the short pad: the program then runs it inline, as the return from a
  /// function costs more than most filters.
  bool filter_is_short() const;
};

/// Fails if there are more instructions than the pad has room for.
Result<void> check_pads(const Pads& pads);

/// In a program that is about to be loaded.
void fill_pads(std::span<bpf_insn> code, const Pads& pads);

}  // namespace coretap
