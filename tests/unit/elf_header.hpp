// The header of a small ELF file that a test makes.
#pragma once
#include <elf.h>

#include <cstring>

#include "base/machine.hpp"

namespace coretap {

/// For this machine; program headers follow it, section headers are anywhere, with their names in
/// the last section.
inline Elf64_Ehdr elf_header(Elf64_Half type, std::size_t segments, Elf64_Off sections_at = 0,
                             std::size_t sections = 0) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
  header.e_type = type;
  header.e_machine = machine::kElf;
  header.e_phoff = header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<Elf64_Half>(segments);
  header.e_shoff = sections_at;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections);
  header.e_shstrndx = static_cast<Elf64_Half>(sections ? sections - 1 : 0);
  return header;
}

}  // namespace coretap
