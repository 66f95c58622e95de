// A compact table of the functions of one ELF file; the file is closed after reading.
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

/// Larger files are not read at all.
inline constexpr std::uint64_t kMaxElfSize = 4ULL << 30;

/// Keys for finding the separate debug file of a stripped file.
struct DebugFileKey {
  std::string build_id = {};   ///< lower-case hexadecimal; empty if there is none
  std::string debuglink = {};  ///< a plain file name; empty if there is none
  std::uint32_t checksum = 0;  ///< of the file that `debuglink` names

  /// Where the debug file of the file at `path` may be.
  std::vector<std::string> paths(const std::string& debug_root, const std::string& path) const;
  /// True if the open file has the build id or, without one, the checksum. Files above a gigabyte
  /// have no checksum.
  bool is_of(int fd) const;
};
DebugFileKey debug_file_key(int fd);
/// Path of the debug file with this build id; empty: no build id.
std::string build_id_path(const std::string& debug_root, const std::string& build_id);

/// Calls `accept` with open candidate files until it returns true.
using FindDebugFile =
    std::function<void(const DebugFileKey&, const std::function<bool(int fd)>& accept)>;

/// The build id of an ELF file, in lower-case hexadecimal; empty: it has none.
std::string build_id(int fd, bool relocatable = false);
std::string hexadecimal(std::string_view bytes);

class ElfSymbols {
 public:
  struct Function {
    std::uint64_t start;  // ELF virtual address
    std::uint32_t size;
    std::uint32_t name;
  };

  /// Null if this is not an ELF executable or shared object. A partly damaged file yields its
  /// readable part. `find_debug_file` is called only if the file has no .symtab.
  static std::shared_ptr<ElfSymbols> read(int fd, const FindDebugFile& find_debug_file = {});
  /// The same from memory, such as a vdso's; the bytes are not needed afterwards.
  static std::shared_ptr<ElfSymbols> read(std::span<const char> image);

  /// Uses program headers; executable segments take precedence.
  std::optional<std::uint64_t> address_of_offset(std::uint64_t file_offset) const;
  /// Offset of code; nullopt if the file has none at the address.
  std::optional<std::uint64_t> offset_of_address(std::uint64_t address) const;
  /// Null between functions and after their ends.
  const Function* find(std::uint64_t address) const;
  const char* name(const Function& function) const { return names_.get(function.name); }
  /// Entry code of a program or thread: called only by the kernel or by other such code of the C
  /// library. Recognized by name, in stripped files by location.
  bool is_entry(std::uint64_t address) const;

  struct Segment {
    std::uint64_t offset;
    std::uint64_t size;  // in the file
    std::uint64_t address;
  };
  /// Executable segments.
  std::span<const Segment> code() const { return {segments_.data(), executable_}; }
  /// In lower-case hexadecimal; empty: none.
  const std::string& build_id() const { return build_id_; }
  /// An executable, position-independent or not, rather than a shared library.
  bool is_program() const { return program_; }

  /// Sorted by start, one per start.
  const std::vector<Function>& functions() const { return functions_; }
  std::size_t bytes() const;

 private:
  friend class ElfReader;
  std::vector<Segment> segments_;  // executable ones first
  std::size_t executable_ = 0;     // number of executable ones
  std::string build_id_;
  std::uint64_t entry_ = 0;  // entry point; 0: none
  bool program_ = false;
  std::vector<Function> functions_;
  NameArena names_;
};

/// Location of a function in a file.
struct FunctionPlace {
  enum State {
    found,
    no_elf,    ///< not an executable or shared object, or a damaged one
    foreign,   ///< for another processor, or 32-bit
    stripped,  ///< no symbols at all
    absent,    ///< there are symbols, but none of that name
    indirect,  ///< chosen at run time (IFUNC): the address is not that of the code
    outside,   ///< not in the file's code
  } state = no_elf;
  std::vector<std::uint64_t> offsets = {};  ///< in the file; several if versions have separate code
};

/// Finds a function by name, without version, in .symtab and .dynsym; exported ones before local
/// ones.
FunctionPlace find_function(int fd, std::string_view name);

/// A symbol of a file's dynamic table.
struct ExportedSymbol {
  std::uint64_t address = 0, size = 0;       ///< address 0: there is none
  std::optional<std::uint64_t> offset = {};  ///< in the file
};
/// Of these names, without versions, in their order.
std::vector<ExportedSymbol> find_exported(int fd, std::span<const std::string_view> names);

/// Functions of a file whose names satisfy a condition.
struct NamedFunctions {
  struct Function {
    std::string name;
    std::uint64_t offset;  ///< in the file
  };
  FunctionPlace::State state = FunctionPlace::no_elf;
  std::vector<Function> functions;  ///< sorted by offset, one per offset
  std::size_t indirect = 0;         ///< chosen at run time (IFUNC)
  std::size_t outside = 0;          ///< not in the file's code
  std::size_t beyond = 0;           ///< symbols above the maximum
};
NamedFunctions find_functions(int fd, const std::function<bool(const char*)>& wanted,
                              std::size_t most);

}  // namespace coretap::symbols
