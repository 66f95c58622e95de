// ELF files from sections by number.
#pragma once
#include <elf.h>

#include <span>
#include <string>
#include <vector>

#include "elf_header.hpp"
#include "fuzz.hpp"

namespace coretap::fuzz {

/// Each section follows its number in `names` (with 0x80: compressed) and a length of 16 bits; the
/// last of `names` is a note. Damage to the sections never damages the ELF headers.
inline std::string with_sections(Input input, std::span<const char* const> names_of) {
  std::string file(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), '\0'), names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  auto add = [&](const char* name, std::string_view bytes, Elf64_Xword flags, Elf64_Word type) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = header.sh_addr = file.size();
    header.sh_size = bytes.size();
    header.sh_addralign = 1;
    headers.push_back(header);
    names += name + std::string(1, '\0');
    file += bytes;
  };
  while (!input.empty() && headers.size() < 40) {
    const auto number = input.number<std::uint8_t>();
    const auto bytes = input.text(input.number<std::uint16_t>());
    const auto which = number % names_of.size();
    add(names_of[which], bytes, number & 0x80 ? SHF_COMPRESSED : 0,
        which == names_of.size() - 1 ? SHT_NOTE : SHT_PROGBITS);
  }
  names += ".shstrtab" + std::string(1, '\0');
  const auto own = names.size() - sizeof ".shstrtab";
  add("", std::string(names), 0, SHT_STRTAB);
  headers.back().sh_name = static_cast<Elf64_Word>(own);

  const auto header = elf_header(ET_DYN, 1, file.size(), headers.size());
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_filesz = segment.p_memsz = std::uint64_t{1} << 47;  // an offset is an address
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
  return file.append(reinterpret_cast<const char*>(headers.data()),
                     headers.size() * sizeof headers[0]);
}

}  // namespace coretap::fuzz
