// A builder of a list of BPF instructions.
#pragma once
#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coretap::expression {

class Code {
 public:
  using Label = std::size_t;  ///< identifies a jump whose target is set later

  void move(int to, int from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from); }
  void set(int to, std::int64_t value);
  void calculate(int operation, int to, int from) { add(BPF_ALU64 | operation | BPF_X, to, from); }
  void calculate_by(int operation, int to, std::int32_t value) {
    add(BPF_ALU64 | operation | BPF_K, to, 0, 0, value);
  }
  void negate(int reg) { add(BPF_ALU64 | BPF_NEG, reg); }
  /// Reverses the low `bytes` bytes (2 or 4), and clears the others.
  void to_big_endian(int reg, std::uint32_t bytes) {
    add(BPF_ALU | BPF_END | BPF_TO_BE, reg, 0, 0, static_cast<std::int32_t>(8 * bytes));
  }
  void cut_to_32_bits(int reg) { add(BPF_ALU | BPF_MOV | BPF_X, reg, reg); }
  /// Loads `bytes` bytes, zero-extended, from the address in `from`.
  void load(std::uint32_t bytes, int to, int from, int offset) {
    add(BPF_LDX | BPF_MEM | size(bytes), to, from, offset);
  }
  void store(int to, int offset, int from) { add(BPF_STX | BPF_MEM | BPF_DW, to, from, offset); }
  void store_zero(int to, int offset) { add(BPF_ST | BPF_MEM | BPF_DW, to, 0, offset); }
  /// Calls a helper that reads `bytes` bytes at the address in r3 to memory: at `at` from `base`.
  void call_to_read(int helper, int base, int at, std::int64_t bytes) {
    move(BPF_REG_1, base);
    calculate_by(BPF_ADD, BPF_REG_1, at);
    set(BPF_REG_2, bytes);
    call(helper);
  }
  void call(int helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }

  Label jump() { return jump_to(BPF_JA, 0, 0, false, 0); }
  /// Jumps if the comparison of registers `a` and `b` holds.
  Label jump_if(int comparison, int a, int b) { return jump_to(comparison, a, b, true, 0); }
  Label jump_if_value(int comparison, int a, std::int32_t value) {
    return jump_to(comparison, a, 0, false, value);
  }
  /// Sets the jump's target to the next instruction.
  void here(Label label);

  const std::vector<bpf_insn>& instructions() const { return all_; }
  void append(const Code& other) { all_.insert(all_.end(), other.all_.begin(), other.all_.end()); }
  /// False: a jump's offset does not fit in an instruction.
  bool well_formed() const { return !too_far_; }

 private:
  static int size(std::uint32_t bytes) {
    return bytes == 1 ? BPF_B : bytes == 2 ? BPF_H : bytes == 4 ? BPF_W : BPF_DW;
  }
  Label jump_to(int comparison, int a, int b, bool by_register, std::int32_t value);
  void add(int code, int to, int from = 0, int offset = 0, std::int32_t value = 0);

  std::vector<bpf_insn> all_;
  bool too_far_ = false;
};

}  // namespace coretap::expression
