#include "symbols/elf_file.hpp"

#include <elf.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/machine.hpp"
#include "base/read_failures.hpp"
#include "coretap/small_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMaxPath = 4096;

// libelf accepts section and program header counts of the extended form up to the file's size and
// allocates memory for them. Executables and shared objects never need that form.
bool plausible_header(std::span<const char> head, bool relocatable = false) {
  if (head.size() < EI_NIDENT || ::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return false;
  const auto check = [&](const auto& header) {
    const bool extended =
        header.e_shoff != 0 && (header.e_shnum == 0 || header.e_shnum >= SHN_LORESERVE);
    return !extended && header.e_phnum != PN_XNUM && header.e_phnum <= kMaxSegments &&
           (header.e_type == ET_EXEC || header.e_type == ET_DYN ||
            (relocatable && header.e_type == ET_REL));
  };
  constexpr char kOwnOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  if (head[EI_DATA] != kOwnOrder) return false;
  if (head[EI_CLASS] == ELFCLASS64 && head.size() >= sizeof(Elf64_Ehdr)) {
    Elf64_Ehdr header;
    ::memcpy(&header, head.data(), sizeof header);
    return check(header);
  }
  if (head[EI_CLASS] == ELFCLASS32 && head.size() >= sizeof(Elf32_Ehdr)) {
    Elf32_Ehdr header;
    ::memcpy(&header, head.data(), sizeof header);
    return check(header);
  }
  return false;
}

// libelf reads the tables of headers when one of them is asked for, and leaves out one that is
// behind the end of the file.
bool has_headers(Elf* elf) {
  GElf_Ehdr header;
  std::size_t sections = 0, segments = 0;
  GElf_Shdr section;
  GElf_Phdr segment;
  return ::gelf_getehdr(elf, &header) != nullptr && ::elf_getshdrnum(elf, &sections) == 0 &&
         ::elf_getphdrnum(elf, &segments) == 0 && sections == header.e_shnum &&
         segments == header.e_phnum &&
         (sections == 0 || ::gelf_getshdr(::elf_getscn(elf, 0), &section) != nullptr) &&
         (segments == 0 || ::gelf_getphdr(elf, 0, &segment) != nullptr);
}

}  // namespace

ElfHandle open_elf(int fd, bool relocatable) {
  ::elf_version(EV_CURRENT);
  char head[sizeof(Elf64_Ehdr)];
  const std::size_t got = read_bytes(fd, 0, head, sizeof head);
  if (!plausible_header({head, got}, relocatable)) return {};
  errno = 0;  // libelf's own numbers do not say why reading has failed
  ElfHandle elf(::elf_begin(fd, ELF_C_READ, nullptr));
  if (!elf || !has_headers(elf.get())) ReadFailures::note(errno);
  if (elf && ::elf_kind(elf.get()) != ELF_K_ELF) elf.reset();
  return elf;
}

ElfHandle open_elf(std::vector<std::uint64_t>& image, std::size_t size) {
  ::elf_version(EV_CURRENT);
  char* bytes = reinterpret_cast<char*>(image.data());
  if (!plausible_header({bytes, size})) return {};
  ElfHandle elf(::elf_memory(bytes, size));
  if (elf && ::elf_kind(elf.get()) != ELF_K_ELF) elf.reset();
  return elf;
}

Elf_Data* section_data(Elf_Scn* section, const GElf_Shdr& header, std::uint64_t max_size) {
  if (header.sh_type == SHT_NOBITS || header.sh_size == 0 || header.sh_size > max_size ||
      (header.sh_flags & SHF_COMPRESSED) != 0)
    return nullptr;
  errno = 0;
  Elf_Data* data = ::elf_getdata(section, nullptr);
  if (data != nullptr && data->d_buf != nullptr) return data;
  ReadFailures::note(errno);
  return nullptr;
}

bool find_section(Elf* elf, const IsSection& found) {
  constexpr std::uint64_t kMaxNames = 16 << 20;
  std::size_t names = 0;
  GElf_Shdr header;
  if (::elf_getshdrstrndx(elf, &names) != 0) return false;
  Elf_Scn* strings = ::elf_getscn(elf, names);
  if (strings == nullptr || ::gelf_getshdr(strings, &header) == nullptr ||
      section_data(strings, header, kMaxNames) == nullptr)
    return false;
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(elf, section)) != nullptr;) {
    if (::gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = ::elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && found(section, header, name)) return true;
  }
  return false;
}

std::string interpreter_of(Elf* elf) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return {};
  for (std::size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr ||
        header.p_type != PT_INTERP || header.p_filesz > kMaxPath)
      continue;
    const Elf_Data* data = ::elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset),
                                                  header.p_filesz, ELF_T_BYTE);
    if (data == nullptr || data->d_buf == nullptr) return {};
    const std::string_view path(static_cast<const char*>(data->d_buf), data->d_size);
    return std::string(path.substr(0, path.find('\0')));
  }
  return {};
}

bool is_program(Elf* elf) {
  constexpr std::uint64_t kMaxDynamic = 1 << 16;
  GElf_Ehdr file;
  std::size_t count = 0;
  if (::gelf_getehdr(elf, &file) == nullptr || ::elf_getphdrnum(elf, &count) != 0) return false;
  if (file.e_type == ET_EXEC) return true;
  bool interpreted = false, named = false;
  for (std::size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
    interpreted |= header.p_type == PT_INTERP;
    if (header.p_type != PT_DYNAMIC || header.p_filesz > kMaxDynamic) continue;
    Elf_Data* data = ::elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset),
                                            header.p_filesz, ELF_T_DYN);
    GElf_Dyn entry;
    for (int at = 0; data != nullptr && ::gelf_getdyn(data, at, &entry) != nullptr; ++at) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0) return true;
      named |= entry.d_tag == DT_SONAME;
    }
  }
  // Linkers before binutils 2.26 do not set the flag.
  return interpreted && !named;
}

bool is_native(Elf* elf) {
  GElf_Ehdr header;
  return ::gelf_getclass(elf) == ELFCLASS64 && ::gelf_getehdr(elf, &header) != nullptr &&
         header.e_machine == machine::kElf;
}

std::optional<std::uint64_t> file_offset(Elf* elf, std::uint64_t size, std::uint64_t address,
                                         GElf_Word right) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return {};
  for (std::size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type != PT_LOAD || (header.p_flags & right) == 0 || address < header.p_vaddr)
      continue;
    const std::uint64_t into = address - header.p_vaddr;
    if (into < header.p_filesz && into < size && header.p_offset < size - into)
      return header.p_offset + into;
  }
  return {};
}

}  // namespace coretap::symbols
