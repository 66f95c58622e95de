#include "expression/debug_sections.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/read_failures.hpp"
#include "coretap/small_files.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/packed_section.hpp"
#include "symbols/process_files.hpp"

namespace coretap::expression {

namespace {

using symbols::PackedSection;

/// Sections that the reader uses: not those of lines, frames and macros.
constexpr std::array<std::string_view, 12> kNames = {
    ".debug_info",   ".debug_types", ".debug_abbrev",   ".debug_aranges",
    ".debug_addr",   ".debug_str",   ".debug_line_str", ".debug_str_offsets",
    ".debug_ranges", ".debug_loc",   ".debug_rnglists", ".debug_loclists",
};
constexpr std::uint64_t kMostBytes = 2ULL << 30;  // all sections, uncompressed
constexpr std::uint64_t kMostLink = 8192;
constexpr std::uint64_t kZlibRatio = 1032;  // maximum compression ratio of zlib
constexpr std::uint64_t kRoom = 16;         // minimum number of zeros after a section

template <class T>
bool read_value(int fd, std::uint64_t at, T& value) {
  return read_bytes(fd, at, &value, sizeof value) == sizeof value;
}

bool read_section(int fd, const PackedSection& section, char* to) {
  if (!section.is_packed()) return read_bytes(fd, section.at, to, section.size) == section.size;
  const std::span all(reinterpret_cast<std::uint8_t*>(to), section.size);
  return symbols::unpack(fd, section, [&](std::uint64_t written) { return all.subspan(written); });
}

/// Location of a section with a requested name. nullopt: it is damaged.
std::optional<PackedSection> source_of(int fd, const GElf_Shdr& header, bool with_z) {
  auto source = symbols::packed_section(fd, header);
  if (with_z) {
    struct {
      char magic[4];
      unsigned char size[8];
    } old{};
    source = {PackedSection::zlib, header.sh_offset + sizeof old, header.sh_size - sizeof old, 0};
    if (header.sh_size <= sizeof old || !read_value(fd, header.sh_offset, old) ||
        std::memcmp(old.magic, "ZLIB", 4) != 0)
      return {};
    for (auto byte : old.size) source->size = source->size << 8 | byte;
  }
  if (source && source->packing == PackedSection::zlib &&
      source->size / kZlibRatio > source->stored)
    return {};
  return source;
}

}  // namespace

Result<DebugSections> DebugSections::read(int fd, bool relocatable) {
  static_assert(kNames.size() == kSections);
  const auto file = symbols::identity_of(fd);
  const auto elf = symbols::open_elf(fd, relocatable);
  if (!file || !elf || !symbols::is_native(elf.get()))
    return Error{"the file has no debug information"};

  DebugSections all;
  std::array<std::optional<PackedSection>, kSections> sources;
  auto see = [&](const GElf_Shdr& header, std::string_view name) {
    if (header.sh_type == SHT_NOBITS || !header.sh_size) return;
    if (header.sh_offset > file->size || header.sh_size > file->size - header.sh_offset)
      return ReadFailures::note(0);
    if (name == ".gnu_debugaltlink") {
      const auto text = symbols::read_at(fd, header.sh_offset, std::min(header.sh_size, kMostLink));
      const auto end = text.find('\0');
      if (end == 0 || end == text.npos) return;
      all.alternate_ = text.substr(0, end);
      all.alternate_id_ = symbols::hexadecimal(text.substr(end + 1));
    }
    const bool with_z = name.starts_with(".zdebug_");
    const auto plain = with_z ? "." + std::string(name.substr(2)) : std::string(name);
    const auto known = std::ranges::find(kNames, plain);
    if (known == kNames.end()) return;
    auto& source = sources[static_cast<std::size_t>(known - kNames.begin())];
    if (!source) source = source_of(fd, header, with_z);
  };
  symbols::find_section(elf.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
    see(header, name);
    return false;
  });
  if (!sources[0] || !sources[2]) return Error{"the file has no debug information"};

  // Layout: ELF header, sections, section names, section headers.
  constexpr auto padded = [](std::uint64_t size) { return (size + 2 * kRoom - 1) / kRoom * kRoom; };
  std::uint64_t end = padded(sizeof(Elf64_Ehdr));
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  auto add = [&](std::string_view name, Elf64_Word type, std::uint64_t size) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = type;
    header.sh_offset = end;
    header.sh_size = size;
    header.sh_addralign = 1;
    headers.push_back(header);
    names += std::string(name) + '\0';
  };
  for (std::size_t i = 0; i < kSections; i++) {
    if (!sources[i]) continue;
    const auto size = sources[i]->size;
    all.places_[i] = {end, size};
    add(kNames[i], SHT_PROGBITS, size);
    if (size > kMostBytes || (end += padded(size)) > kMostBytes)
      return Error{"the file's debug information takes more than 2 GiB"};
  }
  constexpr std::string_view kNamesSection = ".shstrtab";
  add(kNamesSection, SHT_STRTAB, names.size() + kNamesSection.size() + 1);
  const auto headers_at = end + padded(names.size());
  all.size_ = headers_at + headers.size() * sizeof headers[0];
  all.image_.resize(padded(all.size_) / sizeof all.image_[0]);

  auto* image = reinterpret_cast<char*>(all.image_.data());
  GElf_Ehdr own;
  ::gelf_getehdr(elf.get(), &own);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, own.e_ident, sizeof header.e_ident);
  header.e_type = ET_DYN;
  header.e_machine = own.e_machine;
  header.e_version = EV_CURRENT;
  header.e_shoff = headers_at;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof headers[0];
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  std::memcpy(image, &header, sizeof header);
  std::ranges::copy(names, image + end);
  std::memcpy(image + headers_at, headers.data(), headers.size() * sizeof headers[0]);
  for (std::size_t i = 0; i < kSections; i++)
    if (sources[i] && !read_section(fd, *sources[i], image + all.places_[i].at))
      return Error{"the file's debug information is damaged"};
  return all;
}

Elf* DebugSections::elf() {
  if (!elf_) elf_ = symbols::open_elf(image_, size_);
  return elf_.get();
}

std::string_view DebugSections::section(std::string_view name) const {
  const auto known = std::ranges::find(kNames, name);
  if (known == kNames.end()) return {};
  auto& place = places_[static_cast<std::size_t>(known - kNames.begin())];
  return {reinterpret_cast<const char*>(image_.data()) + place.at, place.size};
}

}  // namespace coretap::expression
