// libelf handles of untrusted files, for the readers in this directory.
#pragma once
#include <gelf.h>
#include <libelf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coretap::symbols {

inline constexpr std::size_t kMaxSegments = 512;

struct ElfCloser {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfCloser>;

/// Null unless it is an ELF executable or shared object of this machine's byte order, or (if
/// `relocatable`) an object file. Uses plain reads: a mapping of another user's file may become
/// invalid. ReadFailures notes what cannot be read.
ElfHandle open_elf(int fd, bool relocatable = false);
ElfHandle open_elf(std::vector<std::uint64_t>& image, std::size_t size);

/// The contents of a section of at most `max_size` bytes; null: none.
Elf_Data* section_data(Elf_Scn* section, const GElf_Shdr& header, std::uint64_t max_size);

/// Visits sections with their names until `found` returns true.
using IsSection = std::function<bool(Elf_Scn*, const GElf_Shdr&, std::string_view name)>;
bool find_section(Elf* elf, const IsSection& found);

/// The path of the dynamic linker (PT_INTERP), read from the open file; empty: it needs none.
std::string interpreter_of(Elf* elf);

/// An executable, position-independent or not; some libraries have an entry point and a dynamic
/// linker, too.
bool is_program(Elf* elf);

/// True if it is for this machine's processor.
bool is_native(Elf* elf);

/// File offset of the code (PF_X) or writable data (PF_W) at this address, in a file of `size`
/// bytes. nullopt if the file has none there; headers may refer to data past the end of the file.
std::optional<std::uint64_t> file_offset(Elf* elf, std::uint64_t size, std::uint64_t address,
                                         GElf_Word right);

}  // namespace coretap::symbols
