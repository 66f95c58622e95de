// How the return of a user function is probed.
//
// The kernel's return probe replaces the return address on the stack. What unwinds finds an address
// without unwind information there: exceptions end in terminate(), Rust aborts, a cancelled thread
// runs no destructors, Go stops with "unexpected return pc". A probe on each return instruction
// leaves the stack as it is. It needs the function's bounds and all ways out of it.
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

#include "base/fd.hpp"
#include "coretap/result.hpp"
#include "symbols/code_place.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap {

/// The ways out of a function.
struct FunctionReturns {
  enum State {
    found,
    no_bounds,   ///< no symbol says where it ends
    unreadable,  ///< an instruction is not known, or the file is cut
    leaves,      ///< it may end by a jump to it is not known where
  } state = no_bounds;
  std::vector<std::uint64_t> offsets = {};  ///< of the return instructions, in the file
  std::vector<std::uint64_t> tails = {};    ///< of functions that it may end by a jump to
  bool calls = true;                        ///< if false, nothing can unwind through it
};

/// The code of one file. The descriptor stays the caller's, and is read at each call.
class FileCode {
 public:
  explicit FileCode(int fd);
  ~FileCode();

  /// Of the function that begins at this offset in the file.
  FunctionReturns returns(std::uint64_t begin);
  /// The function, or the part of one, that .eh_frame describes at this ELF address.
  std::optional<symbols::CodeRange> described_at(std::uint64_t address);
  /// Written in Go: its functions may change their thread, and their stack its place.
  bool is_go() const { return go_; }
  /// A program in C alone that cancels no threads. Of libraries it is not known who calls them.
  bool never_unwinds() const { return never_unwinds_; }

 private:
  class Sweep;
  void read_sections();
  void read_relocations(Elf* elf, Elf_Scn* section, const GElf_Shdr& header);
  std::uint64_t behind_stub(std::uint64_t address);
  void read_frames();
  symbols::CodeRange bounds_of(std::uint64_t address);
  bool may_have_left(std::uint64_t address);

  int fd_;
  std::uint64_t left_;  ///< bytes of code that may still be read
  bool go_ = false, never_unwinds_ = false, frames_read_ = false;
  std::shared_ptr<symbols::ElfSymbols> symbols_;  ///< read when a function is looked at
  /// By ELF address: is the stack from there on as it was at the function's entry?
  std::vector<std::pair<std::uint64_t, bool>> rows_;
  std::vector<symbols::CodeRange> described_;  ///< by start
  /// Functions of this file that it calls by the dynamic linker, by the words with their addresses.
  std::map<std::uint64_t, std::uint64_t> linked_;
};

/// What is attached for the returns of a function.
struct ReturnProbe {
  std::vector<std::uint64_t> offsets = {};  ///< plain probes; none: the kernel's return probe
  std::string refusal = {};                 ///< not empty: neither
  std::string hint = "probe its entry";     ///< what to do then
};

Error cannot_probe_return(std::string_view function, const ReturnProbe& refused);

/// Chooses for each function; reads each file once.
class ReturnProbes {
 public:
  /// `any`: take the kernel's return probe wherever there is no other way (--return-trampoline).
  explicit ReturnProbes(bool any) : any_(any) {}

  /// `matched`: the program takes only returns whose entry it has seen (is_return_of() of
  /// bpf/lib/call.bpf.h). Then a function may end by a jump to one that others call.
  ReturnProbe of(const std::shared_ptr<Fd>& file, std::string_view function, std::uint64_t begin,
                 bool matched);
  FileCode& code(const std::shared_ptr<Fd>& file);

 private:
  ReturnProbe refused(std::string why, const FileCode& code) const;

  bool any_;
  std::map<std::shared_ptr<Fd>, std::unique_ptr<FileCode>> files_;
};

}  // namespace coretap
