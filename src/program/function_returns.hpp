// How the return of a user function is probed.
//
// The kernel's return probe replaces the return address on the stack. An unwinder then finds an
// address without unwind information: exceptions end in terminate(), Rust aborts, cancelled threads
// run no destructors, Go stops with "unexpected return pc". At an entry on a stack at higher
// addresses, the kernel forgets the returns from a lower one: a coroutine that is resumed later
// ends with SIGILL, or returns to another one's caller. Of nested calls beyond 64, the kernel
// leaves out the returns. A probe on each return instruction leaves the stack unchanged, and sees
// all of them. It needs the function's bounds and all its exits.
#pragma once
#include <gelf.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/hooks.hpp"
#include "coretap/result.hpp"
#include "program/uprobe_proof.hpp"
#include "symbols/code_place.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap {

/// The exits of a function.
struct FunctionReturns {
  enum State {
    found,
    no_bounds,   ///< no symbol gives its end
    unreadable,  ///< an instruction is unknown, or the file is truncated
    leaves,      ///< it may end by a jump to an unknown address
  } state = no_bounds;
  std::vector<std::uint64_t> offsets = {};  ///< of the return instructions, in the file
  std::vector<std::uint64_t> tails = {};    ///< of functions that it may tail-call
  bool calls = true;                        ///< false: nothing can unwind through it
};

/// The code of one file. The caller owns the descriptor, which is read at each call.
class FileCode {
 public:
  /// `emulated`: whether the kernel emulates instructions of a form.
  explicit FileCode(int fd, bool (*emulated)(symbols::EntryStep::Form) = emulates);

  /// For the function that starts at this offset in the file.
  FunctionReturns returns(std::uint64_t begin);
  /// Where a probe sees each call of the function that starts at `begin` once, with what it reads,
  /// at the least cost: at its start, or behind instructions that change nothing of that, on one
  /// that the kernel emulates (program/uprobe_proof.hpp).
  /// `crashes`: also calls that end at a bad address before that.
  symbols::EntryPlace entry_place(std::uint64_t begin, EntryReads reads, bool crashes);
  symbols::EntryStep::Form form_at(std::uint64_t offset) const;
  /// The function, or part of one, that .eh_frame describes at this ELF address.
  std::optional<symbols::CodeRange> described_at(std::uint64_t address);
  /// Written in Go: goroutines may move to another thread, and their stacks may be moved.
  bool is_go();

 private:
  class Sweep;
  static constexpr std::uint64_t kMostCode = 1 << 20;  ///< bytes of a function

  std::optional<std::uint64_t> address_of(std::uint64_t offset);
  void read_relocations(Elf* elf, Elf_Scn* section, const GElf_Shdr& header);
  std::uint64_t behind_stub(std::uint64_t address);
  void read_frames();
  symbols::CodeRange bounds_of(std::uint64_t address);
  bool may_have_left(std::uint64_t address);
  bool jumped_to(symbols::CodeRange place);
  bool far_jumps_to(symbols::CodeRange place);
  bool may_jump(std::uint64_t address, symbols::CodeRange place);
  bool begins_within(symbols::CodeRange place);
  bool has_jump(symbols::CodeRange code, symbols::CodeRange place, bool tables = false);

  int fd_;
  bool (*emulated_)(symbols::EntryStep::Form);
  std::uint64_t left_;  ///< bytes of code that may still be read
  bool inspected_ = false, go_ = false, frames_read_ = false;
  std::shared_ptr<symbols::ElfSymbols> symbols_;  ///< read when the first function is looked at
  /// By ELF address: from there on, is the stack as at the function's entry?
  std::vector<std::pair<std::uint64_t, bool>> rows_;
  std::vector<symbols::CodeRange> described_;  ///< by start
  /// Targets in this file of calls through the dynamic linker, by address of the relocated word.
  std::map<std::uint64_t, std::uint64_t> linked_;
  /// Targets of direct jumps and calls, a bit for each byte of code; read at first use.
  struct Targets {
    std::uint64_t begin;
    std::vector<bool> taken;
  };
  std::optional<std::vector<Targets>> targets_;
};

/// How to probe the returns of a function.
struct ReturnProbe {
  std::vector<std::uint64_t> offsets = {};  ///< plain probes; empty: the kernel's return probe
  std::string refusal = {};                 ///< not empty: the return cannot be probed
  std::string hint = "probe its entry";     ///< printed with the refusal
};

Error cannot_probe_return(std::string_view function, const ReturnProbe& refused);

/// Chooses for each function; reads each file once.
class ReturnProbes {
 public:
  /// `any`: use the kernel's return probe if there is no other way (--return-trampoline).
  explicit ReturnProbes(bool any) : any_(any) {}

  /// `matched`: the program takes only returns whose entry it has seen (is_return_of() in
  /// bpf/lib/targets/call.bpf.h). Then a function may tail-call one that has other callers.
  ReturnProbe of(const std::shared_ptr<Fd>& file, std::string_view function, std::uint64_t begin,
                 bool matched);
  FileCode& code(const std::shared_ptr<Fd>& file);

 private:
  ReturnProbe refused(std::string why, FileCode& code) const;

  bool any_;
  std::map<std::shared_ptr<Fd>, std::unique_ptr<FileCode>> files_;
};

}  // namespace coretap
