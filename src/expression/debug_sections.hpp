// The debug sections of an ELF file that may be hostile: unpacked and bounded, as an ELF file of
// their own in memory. libdw reads that one, and nothing else:
// - A mapping of somebody else's file may vanish under us, so the bytes are copied.
// - libdw opens what .gnu_debugaltlink names, even a FIFO, which would never answer. This copy has
//   no such section.
// - libdw takes the end of a text in .debug_info for granted. Here zeros follow each section.
// - What sections unpack to is known and bounded before memory is taken.
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
  /// Of an open file, which is not needed afterwards. An error says in `what` why there are none.
  /// What several files have in common (dwz) is in a `relocatable` one.
  static Result<DebugSections> read(int fd, bool relocatable = false);

  /// It reads from this object, which stays where it is from then on.
  Elf* elf();
  /// ".debug_info"; empty: there is none.
  std::string_view section(std::string_view name) const;
  /// Another file that these sections refer to (.gnu_debugaltlink), and its build id in lower-case
  /// hexadecimal; empty: none.
  const std::string& alternate() const { return alternate_; }
  const std::string& alternate_id() const { return alternate_id_; }
  /// The file's own.
  const std::string& build_id() const { return build_id_; }

 private:
  static constexpr std::size_t kSections = 12;
  struct Place {
    std::uint64_t at = 0, size = 0;
  };

  std::vector<std::uint64_t> image_;
  std::size_t size_ = 0;
  std::array<Place, kSections> places_{};
  std::string alternate_, alternate_id_, build_id_;
  symbols::ElfHandle elf_;
};

/// The separate debug file that a file names (.gnu_debuglink); empty: none.
struct DebugLink {
  std::string name;  ///< without a directory
  std::uint32_t checksum = 0;
};
DebugLink debug_link(int fd);
/// Is this the file's checksum? Files above a gigabyte are not read.
bool has_checksum(int fd, std::uint32_t checksum);

}  // namespace coretap::expression
