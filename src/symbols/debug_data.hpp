// Sections with debug information of an untrusted ELF file, read in pieces.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/packed_section.hpp"

namespace coretap::symbols {

/// A section. If it is compressed, all of it is in memory after the first read.
class DebugSection {
 public:
  DebugSection() = default;
  /// A part of a file that is not compressed.
  DebugSection(int fd, std::uint64_t place, std::uint64_t size)
      : fd_(fd), section_{PackedSection::plain, place, size, size} {}
  std::uint64_t size() const { return section_.size; }
  /// `count` bytes; nullopt unless all can be read. Valid until the next call.
  std::optional<Bytes> at(std::uint64_t offset, std::uint64_t count);
  /// At most `count` bytes from `offset` on: fewer at the end of the section. Valid until the next
  /// call.
  Bytes from(std::uint64_t offset, std::uint64_t count);
  /// The same bytes as a copy; false unless all can be read.
  bool read(std::uint64_t offset, std::uint64_t count, std::vector<std::uint8_t>& to);
  /// A text that ends with a NUL, cut at 4 KiB; empty: there is none.
  std::string text(std::uint64_t offset);

 private:
  friend class DebugData;
  bool unpack();

  int fd_ = -1;
  PackedSection section_;
  bool unpacked_ = false;
  std::vector<std::uint8_t> bytes_;  // a window of the section, or all of it
  std::uint64_t begin_ = 0;          // of the window
  std::uint64_t* room_ = nullptr;    // bytes left for uncompressed sections
};

/// The open file is used until this object ends, which must not be moved.
class DebugData {
 public:
  enum Name : std::uint8_t {
    info,
    abbrev,
    aranges,
    line,
    str,
    line_str,
    str_offsets,
    addr,
    ranges,
    rnglists,
    kSections
  };
  /// `most_unpacked`: bytes of all compressed sections.
  explicit DebugData(int fd, std::uint64_t most_unpacked = 0);
  DebugData(const DebugData&) = delete;
  DebugData& operator=(const DebugData&) = delete;

  DebugSection& operator[](Name name) { return sections_[name]; }
  /// Empty: it has units and their abbreviations.
  std::string_view why_not() const { return why_not_; }

 private:
  std::array<DebugSection, kSections> sections_;
  std::uint64_t room_;
  std::string_view why_not_;
};

}  // namespace coretap::symbols
