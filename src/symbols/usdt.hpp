// USDT probes of an ELF file: the notes that <sys/sdt.h> leaves in .note.stapsdt.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coretap::symbols {

/// One argument of a probe, as the compiler placed it: "-4@$5", "8@%rax", "8@-8(%rbp)", "4@x0",
/// "-4@[sp, 12]".
struct UsdtArgument {
  enum Where {
    constant,
    in_register,  ///< `base`
    in_memory,    ///< at base + index * scale + value
  } where = constant;
  int size = 8;             ///< bytes
  bool is_signed = false;   ///< else zero-extended
  bool floating = false;    ///< "8f@..."
  std::int64_t value = 0;   ///< of a constant, or added to the address
  std::string base, index;  ///< registers as the assembler writes them, without '%'
  int scale = 1;
  bool operator==(const UsdtArgument&) const = default;
};
/// Nothing if one of them is in a form that is not known, such as an address by a symbol's name.
std::optional<std::vector<UsdtArgument>> parse_usdt_arguments(std::string_view text);

struct UsdtProbe {
  std::string provider, name;
  std::string arguments;        ///< not parsed
  std::uint64_t offset = 0;     ///< of its place in the file
  std::uint64_t semaphore = 0;  ///< of the counter of its tracers in the file; 0: it has none
};

struct UsdtProbes {
  std::vector<UsdtProbe> probes;
  std::size_t outside = 0;  ///< whose place is not in the file's code
  bool readable = false;    ///< an ELF file of this machine
};
/// Reads no more than 16 MiB of notes and 65536 probes.
UsdtProbes read_usdt(int fd);

}  // namespace coretap::symbols
