// libelf's handle of a file that may be hostile, for the readers in this directory.
#pragma once
#include <gelf.h>
#include <libelf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace coretap::symbols {

inline constexpr std::size_t kMaxSegments = 512;

struct ElfCloser {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfCloser>;

/// Null unless it is an ELF executable or shared object of this machine's byte order, or an object
/// file where those are `relocatable` too. By plain reads: a mapping of somebody else's file may
/// vanish under us.
ElfHandle open_elf(int fd, bool relocatable = false);
ElfHandle open_elf(std::vector<std::uint64_t>& image, std::size_t size);

/// The bytes of a section of bounded size; null: it has none.
Elf_Data* section_data(Elf_Scn* section, const GElf_Shdr& header, std::uint64_t max_size);

/// Does the dynamic linker start it?
bool has_interpreter(Elf* elf);

/// Is it for this machine's processor?
bool is_native(Elf* elf);

/// Offset of the code with this address in a file of `size` bytes. Nothing if no code of the file
/// has it; headers may promise more than there is.
std::optional<std::uint64_t> code_offset(Elf* elf, std::uint64_t size, std::uint64_t address);
/// The same of writable data.
std::optional<std::uint64_t> data_offset(Elf* elf, std::uint64_t size, std::uint64_t address);

}  // namespace coretap::symbols
