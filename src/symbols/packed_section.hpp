// Compressed sections of untrusted ELF files.
#pragma once
#include <gelf.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace coretap::symbols {

/// Where a section's contents are in the file.
struct PackedSection {
  enum Packing : std::uint8_t { plain, zlib, zstd } packing = plain;
  std::uint64_t at = 0, stored = 0;  ///< offset and size in the file
  std::uint64_t size = 0;            ///< uncompressed

  bool is_packed() const { return packing != plain; }
};

/// With SHF_COMPRESSED; nullopt: it is damaged, or compressed in another way.
std::optional<PackedSection> packed_section(int fd, const GElf_Shdr& header);

/// Reads and uncompresses it. `room`: where the next bytes go, after this number of bytes; it is
/// empty after `size`. So a small file that promises much takes memory only as its contents arrive.
/// -> whether there were exactly `size` bytes
using RoomFor = std::function<std::span<std::uint8_t>(std::uint64_t written)>;
bool unpack(int fd, const PackedSection& section, const RoomFor& room);

}  // namespace coretap::symbols
