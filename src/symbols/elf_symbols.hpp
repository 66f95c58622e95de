// The functions of one ELF file, as a compact table; the file is closed once it is read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/process_files.hpp"

namespace coretap::symbols {

/// Files above this are not read at all.
inline constexpr std::uint64_t kMaxElfSize = 4ULL << 30;

/// How to find the separate debug file of a stripped one.
struct DebugFileKey {
  std::string build_id;   ///< lower-case hexadecimal; empty if there is none
  std::string debuglink;  ///< a plain file name; empty if there is none
};

/// Calls `accept` with open candidates until it returns true.
using FindDebugFile =
    std::function<void(const DebugFileKey&, const std::function<bool(int fd)>& accept)>;

/// Of an ELF file, in lower-case hexadecimal; empty: it has none.
std::string build_id(int fd);

class ElfSymbols {
 public:
  struct Function {
    std::uint64_t start;  // ELF virtual address
    std::uint32_t size;
    std::uint32_t name;
  };

  /// Null if this is no ELF executable or shared object. One that is damaged in parts yields what
  /// can be read. `find_debug_file` is asked only if the file has no .symtab.
  static std::shared_ptr<ElfSymbols> read(int fd, const FindDebugFile& find_debug_file = {});
  /// The same from memory, such as a vdso's; the bytes are not needed afterwards.
  static std::shared_ptr<ElfSymbols> read(std::span<const char> image);

  /// By program headers; executable segments go first.
  std::optional<std::uint64_t> address_of_offset(std::uint64_t file_offset) const;
  /// Of code; nothing where the file has none.
  std::optional<std::uint64_t> offset_of_address(std::uint64_t address) const;
  /// Null between functions and behind their ends.
  const Function* find(std::uint64_t address) const;
  const char* name(const Function& function) const { return names_.get(function.name); }
  /// Code where a program or a thread begins: nothing calls it but the kernel, or the C library's
  /// other such code. Known by its name, in stripped files by its place.
  bool is_entry(std::uint64_t address) const;

  struct Segment {
    std::uint64_t offset;
    std::uint64_t size;  // in the file
    std::uint64_t address;
  };
  /// Those with code.
  std::span<const Segment> code() const { return {segments_.data(), executable_}; }
  /// In lower-case hexadecimal; empty: it has none.
  const std::string& build_id() const { return build_id_; }

  /// By start, one for each.
  const std::vector<Function>& functions() const { return functions_; }
  std::size_t bytes() const;

 private:
  friend class ElfReader;
  std::vector<Segment> segments_;  // executable ones first
  std::size_t executable_ = 0;     // how many of them
  std::string build_id_;
  std::uint64_t entry_ = 0;  // where the kernel starts it; 0: nowhere
  std::vector<Function> functions_;
  NameArena names_;
};

/// Where a function of a file begins.
struct FunctionPlace {
  enum State {
    found,
    no_elf,    ///< not an executable or shared object, or a damaged one
    foreign,   ///< for another processor, or 32-bit
    stripped,  ///< no symbols at all
    absent,    ///< symbols, but none of that name
    indirect,  ///< chosen at run time among several (IFUNC): its address is not that of the code
    outside,   ///< not in the file's code
  } state = no_elf;
  std::vector<std::uint64_t> offsets;  ///< in the file; several where versions have own code
};

/// By its name, without version, from .symtab and .dynsym; exported ones before local ones.
FunctionPlace find_function(int fd, std::string_view name);

/// Functions of a file by a condition on their names.
struct NamedFunctions {
  struct Function {
    std::string name;
    std::uint64_t offset;  ///< in the file
  };
  FunctionPlace::State state = FunctionPlace::no_elf;
  std::vector<Function> functions;  ///< by offset, one for each
  std::size_t indirect = 0;         ///< chosen at run time (IFUNC)
  std::size_t outside = 0;          ///< not in the file's code
  std::size_t beyond = 0;           ///< symbols above the maximum
};
NamedFunctions find_functions(int fd, const std::function<bool(const char*)>& wanted,
                              std::size_t most);

}  // namespace coretap::symbols
