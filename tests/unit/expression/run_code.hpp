// The kernel's types, and generated instructions that it runs, by BPF_PROG_TEST_RUN.
#pragma once
#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "coretap/fd.hpp"
#include "expect.hpp"
#include "expression/code.hpp"
#include "expression/types.hpp"
#include "lib/targets/expression.h"

namespace coretap::expression {

/// Input and output of a program for a pad, in one entry of a map.
struct RunMemory {
  expression_in in{};
  std::uint64_t result = 0;
  std::uint64_t faulted = 0;
  expression_out out{};
  char text[1024] = {};
};

/// Types of this kernel.
inline const Btf& kernel_types() {
  static Btf btf;
  static const bool open = btf.open();
  EXPECT_TRUE(open);
  return btf;
}

inline const Types& types() {
  static const Types all(&kernel_types());
  return all;
}

inline bool can_run_code() { return geteuid() == 0; }

/// Runs `code` with r6 at .in and r7 at .out. r0 and r8 are kept. None: the kernel rejects it, and
/// the test has failed.
inline std::optional<RunMemory> run_code(const Code& code, const expression_in& in = {}) {
  Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "expression", 4, sizeof(RunMemory), 1, nullptr));
  RunMemory memory;
  memory.in = in;
  std::uint32_t zero = 0;
  if (!map || bpf_map_update_elem(map.get(), &zero, &memory, 0)) {
    ADD_FAILURE() << "no map: " << strerror(errno);
    return {};
  }
  constexpr int at_in = offsetof(RunMemory, in);
  // The address of the value, into r9, r6 and r7.
  std::vector<bpf_insn> all = {
      {BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8, 0},
      {BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map.get()},
      {0, 0, 0, 0, 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0},
      {BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem},
      {BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0},
      {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, 9, 0, 0, 0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_task},
      {BPF_STX | BPF_MEM | BPF_DW, 9, 0, at_in + offsetof(expression_in, task), 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, 6, 9, 0, 0},
      {BPF_ALU64 | BPF_ADD | BPF_K, 6, 0, 0, at_in},
      {BPF_ALU64 | BPF_MOV | BPF_X, 7, 9, 0, 0},
      {BPF_ALU64 | BPF_ADD | BPF_K, 7, 0, 0, offsetof(RunMemory, out)},
      {BPF_ALU64 | BPF_MOV | BPF_K, 8, 0, 0, 0},
      {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0}};
  all.insert(all.end(), code.instructions().begin(), code.instructions().end());
  all.insert(all.end(), {{BPF_STX | BPF_MEM | BPF_DW, 9, 0, offsetof(RunMemory, result), 0},
                         {BPF_STX | BPF_MEM | BPF_DW, 9, 8, offsetof(RunMemory, faulted), 0},
                         {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                         {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}});
  std::string log(1 << 16, '\0');
  LIBBPF_OPTS(bpf_prog_load_opts, options, .log_size = 1 << 16, .log_buf = log.data());
  Fd program(bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "expression", "Dual BSD/GPL", all.data(),
                           all.size(), &options));
  if (!program) {
    ADD_FAILURE() << "refused: " << strerror(errno) << "\n" << log.c_str();
    return {};
  }
  LIBBPF_OPTS(bpf_test_run_opts, run);
  std::uint64_t context[2] = {};
  run.ctx_in = context;
  run.ctx_size_in = sizeof context;
  if (bpf_prog_test_run_opts(program.get(), &run) ||
      bpf_map_lookup_elem(map.get(), &zero, &memory)) {
    ADD_FAILURE() << "not run: " << strerror(errno);
    return {};
  }
  return memory;
}

}  // namespace coretap::expression
