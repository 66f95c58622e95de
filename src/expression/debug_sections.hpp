// The debug sections of an untrusted ELF file: uncompressed, bounded, and copied to a new ELF file
// in memory. libdw reads only that one:
// - A mapping of another user's file may become invalid (truncation), so the bytes are copied.
// - libdw opens the file in .gnu_debugaltlink, even a FIFO, which would block. This copy has no
//   such section.
// - libdw assumes that texts in .debug_info are terminated. Here zeros follow each section.
// - Uncompressed sizes are known and bounded before memory is allocated.
#pragma once
#include <gelf.h>
#include <libelf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "symbols/elf_file.hpp"

namespace coretap::expression {

class DebugSections {
 public:
  /// Reads an open file, which is not needed afterwards. On error, `what` is the reason. Parts that
  /// several files share (dwz) are in a `relocatable` file.
  static Result<DebugSections> read(int fd, bool relocatable = false);

  /// The handle refers to this object, which must not be moved afterwards.
  Elf* elf();
  /// ".debug_info"; empty: there is none.
  std::string_view section(std::string_view name) const;
  /// Another file that these sections refer to (.gnu_debugaltlink), and its build id in lower-case
  /// hexadecimal; empty: none.
  const std::string& alternate() const { return alternate_; }
  const std::string& alternate_id() const { return alternate_id_; }

 private:
  static constexpr std::size_t kSections = 12;
  struct Place {
    std::uint64_t at = 0, size = 0;
  };

  std::vector<std::uint64_t> image_;
  std::size_t size_ = 0;
  std::array<Place, kSections> places_{};
  std::string alternate_, alternate_id_;
  symbols::ElfHandle elf_;
};

}  // namespace coretap::expression
