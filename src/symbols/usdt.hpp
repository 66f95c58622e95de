// USDT probes of an ELF file: the notes that <sys/sdt.h> adds to .note.stapsdt.
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
  std::int64_t value = 0;   ///< the constant, or an offset added to the address
  std::string base, index;  ///< register names in assembler syntax, without '%'
  int scale = 1;
  bool operator==(const UsdtArgument&) const = default;
};
/// nullopt if an argument has an unknown form, such as an address given by a symbol's name.
std::optional<std::vector<UsdtArgument>> parse_usdt_arguments(std::string_view text);

struct UsdtProbe {
  std::string provider, name;
  std::string arguments;        ///< not parsed
  std::uint64_t offset = 0;     ///< file offset of the probe
  std::uint64_t semaphore = 0;  ///< file offset of the counter of its tracers; 0: none
};

struct UsdtProbes {
  std::vector<UsdtProbe> probes;
  std::size_t outside = 0;  ///< probes that are not in the file's code
  bool readable = false;    ///< it is an ELF file for this machine
};
/// Reads at most 16 MiB of notes and 65536 probes.
UsdtProbes read_usdt(int fd);

}  // namespace coretap::symbols
