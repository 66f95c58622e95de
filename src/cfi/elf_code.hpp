// Data that unwinding needs from an ELF file besides CFI: its type and the location of its code.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/machine.hpp"

namespace coretap::unwind {

/// Bytes of a file or of memory, read in pieces: files that others may truncate must not be mapped.
class Image {
 public:
  explicit Image(int fd);  ///< the caller keeps ownership
  explicit Image(std::span<const char> bytes) : memory_(bytes.data()), size_(bytes.size()) {}
  /// False unless all bytes could be read.
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const;
  std::uint64_t size() const { return size_; }

 private:
  int fd_ = -1;
  const char* memory_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Uses program headers only: stripped files have no sections, the vdso's are of no use.
struct ElfCode {
  enum State { usable, no_elf, foreign } state = no_elf;  ///< foreign: 32-bit, or another processor
  std::uint16_t machine = machine::kElf;                  ///< of its code, as in the ELF header
  std::uint64_t size = 0;                                 ///< size of the file
  std::uint64_t entry = 0;
  struct Segment {
    std::uint64_t offset, address, size;  ///< `size`: bytes in the file
    bool executable;
    bool operator==(const Segment&) const = default;
  };
  std::vector<Segment> segments;
  std::uint64_t frame_header = 0;    ///< address of .eh_frame_hdr (PT_GNU_EH_FRAME); 0: none
  std::uint64_t init = 0, fini = 0;  ///< addresses of the functions (DT_INIT, DT_FINI); 0: none

  /// Executable segments take precedence.
  std::optional<std::uint64_t> address_of_offset(std::uint64_t offset) const;
  std::optional<std::uint64_t> offset_of_address(std::uint64_t address) const;
  /// Address of the first byte of an executable mapping of this offset. It may be below the code:
  /// mappings begin at page boundaries, and in some files (lld's) code does not.
  std::optional<std::uint64_t> address_of_mapping(std::uint64_t offset, std::uint64_t bytes) const;
};

/// Hostile files yield no_elf, or only their valid parts. Reads a few kilobytes.
ElfCode read_elf_code(const Image& image, std::uint16_t machine = machine::kElf);

}  // namespace coretap::unwind
