// Small programs written by the test: an endless loop, and tables with arbitrary contents.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "unit/elf_header.hpp"

namespace coretap::tooltest {

class CraftedElf {
 public:
  static constexpr std::uint64_t kBase = 0x400000, kCode = kBase + 0x1000, kPage = 0x1000;

  struct Symbol {
    std::string name;
    std::uint64_t address = kCode, size = 64;
    std::uint32_t name_at = 0;  ///< instead of the real offset of the name
  };
  struct Section {
    std::string name;
    std::uint32_t type = SHT_PROGBITS;
    std::string bytes;
  };

  std::vector<Symbol> symbols;
  std::vector<Section> sections;                  ///< in addition to those of symbols
  std::uint64_t symbols_claimed = 0;              ///< size that the symbol table claims
  std::uint64_t sections_at = 0;                  ///< claimed offset of the section headers
  std::string terminator = std::string(1, '\0');  ///< of the string table
  std::string next_program;                       ///< executed after a while instead of looping

  std::string bytes() const {
    std::string file(3 * kPage, '\0');
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_flags = PF_R | PF_X;
    load.p_vaddr = load.p_paddr = kBase;
    load.p_filesz = load.p_memsz = file.size();
    load.p_align = kPage;
    put(file, sizeof(Elf64_Ehdr), load);
    put_code(file);

    std::string names(1, '\0'), table(sizeof(Elf64_Sym), '\0'), titles(1, '\0');
    for (auto& s : symbols) {
      Elf64_Sym symbol{};
      symbol.st_name = s.name_at ? s.name_at : static_cast<std::uint32_t>(names.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_shndx = 1;
      symbol.st_value = s.address;
      symbol.st_size = s.size;
      table.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
      if (!s.name_at) names += s.name + '\0';
    }
    names.replace(names.size() - 1, 1, terminator);

    std::vector<Elf64_Shdr> headers(1);
    auto add = [&](const std::string& title, std::uint32_t type, const std::string& content) {
      Elf64_Shdr header{};
      header.sh_name = static_cast<std::uint32_t>(titles.size());
      titles += title + '\0';
      header.sh_type = type;
      header.sh_offset = file.size();
      header.sh_size = content.size();
      header.sh_addralign = 1;
      file += content;
      file.resize((file.size() + 7) / 8 * 8);
      headers.push_back(header);
      return &headers.back();
    };
    auto* text = add(".text", SHT_PROGBITS, "");
    text->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    text->sh_addr = kCode;
    text->sh_offset = kPage;
    text->sh_size = kPage;
    auto* symtab = add(".symtab", SHT_SYMTAB, table);
    symtab->sh_entsize = sizeof(Elf64_Sym);
    symtab->sh_link = 3;
    symtab->sh_info = 1;
    if (symbols_claimed) symtab->sh_size = symbols_claimed;
    add(".strtab", SHT_STRTAB, names);
    for (auto& s : sections) add(s.name, s.type, s.bytes);
    titles += std::string(".shstrtab") + '\0';
    auto own_title = titles.size() - sizeof ".shstrtab";
    auto* strings = add("", SHT_STRTAB, titles);
    strings->sh_name = static_cast<std::uint32_t>(own_title);

    auto header = elf_header(ET_EXEC, 1, sections_at ? sections_at : file.size(), headers.size());
    header.e_entry = kCode;
    put(file, 0, header);
    file.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof headers[0]);
    return file;
  }

 private:
  template <class T>
  static void put(std::string& file, std::size_t at, const T& value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  }
  void put_code(std::string& file) const {
#ifdef __aarch64__
    put(file, kPage, std::uint32_t{0x14000000});
#else
    if (next_program.empty()) {
      put(file, kPage, std::uint16_t{0xfeeb});
      return;
    }
    // Counts down, then execve(path, argv, NULL); path and argv are in the third page.
    std::string code("\xb9\0\0\0\x40\xff\xc9\x75\xfc", 9);  // mov ecx; dec ecx; jnz
    auto immediate = [&](const char* op, std::uint64_t value) {
      auto low = static_cast<std::uint32_t>(value);
      code += op;
      code.append(reinterpret_cast<const char*>(&low), sizeof low);
    };
    constexpr std::uint64_t kPath = kBase + 2 * kPage + 16;
    immediate("\xbf", kPath);              // mov edi
    immediate("\xbe", kBase + 2 * kPage);  // mov esi
    code += "\x31\xd2";                    // xor edx, edx
    immediate("\xb8", 59);                 // mov eax, execve
    code += "\x0f\x05\xeb\xfe";            // syscall; jmp .
    std::memcpy(file.data() + kPage, code.data(), code.size());
    put(file, 2 * kPage, kPath);
    std::memcpy(file.data() + 2 * kPage + 16, next_program.c_str(), next_program.size() + 1);
#endif
  }
};

}  // namespace coretap::tooltest
