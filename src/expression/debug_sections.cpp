#include "expression/debug_sections.hpp"

#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/read_failures.hpp"
#include "coretap/small_files.hpp"
#include "symbols/process_files.hpp"

namespace coretap::expression {

namespace {

/// Sections that the reader uses: not those of lines, frames and macros.
constexpr std::array<std::string_view, 12> kNames = {
    ".debug_info",   ".debug_types", ".debug_abbrev",   ".debug_aranges",
    ".debug_addr",   ".debug_str",   ".debug_line_str", ".debug_str_offsets",
    ".debug_ranges", ".debug_loc",   ".debug_rnglists", ".debug_loclists",
};
constexpr std::uint64_t kMostBytes = 2ULL << 30;  // all sections, uncompressed
constexpr std::uint64_t kMostLink = 8192;
constexpr std::uint64_t kMostChecked = 1ULL << 30;
constexpr std::uint64_t kZlibRatio = 1032;  // maximum compression ratio of zlib
constexpr char kNoteOwner[] = ELF_NOTE_GNU;
constexpr std::uint64_t kRoom = 16;  // minimum number of zeros after a section

struct Source {
  enum Packing { plain, zlib, zstd } packing = plain;
  std::uint64_t at = 0, size = 0;  // offset and size in the file
  std::uint64_t unpacked = 0;
};

template <class T>
bool read_value(int fd, std::uint64_t at, T& value) {
  return read_bytes(fd, at, &value, sizeof value) == sizeof value;
}

bool unpack(int fd, const Source& source, char* to) {
  if (source.packing == Source::plain)
    return read_bytes(fd, source.at, to, source.size) == source.size;
  const auto packed = symbols::read_at(fd, source.at, source.size);
  if (source.packing == Source::zstd) {
    const auto got = ::ZSTD_decompress(to, source.unpacked, packed.data(), packed.size());
    return !::ZSTD_isError(got) && got == source.unpacked;
  }
  uLongf got = source.unpacked;
  return ::uncompress(reinterpret_cast<Bytef*>(to), &got,
                      reinterpret_cast<const Bytef*>(packed.data()), packed.size()) == Z_OK &&
         got == source.unpacked;
}

/// Location of a section with a requested name. nullopt: it is damaged.
std::optional<Source> source_of(int fd, const GElf_Shdr& header, bool with_z) {
  Source source{Source::plain, header.sh_offset, header.sh_size, header.sh_size};
  std::uint64_t head = 0;
  if (with_z) {
    struct {
      char magic[4];
      unsigned char size[8];
    } old{};
    head = sizeof old;
    if (!read_value(fd, source.at, old) || std::memcmp(old.magic, "ZLIB", 4) != 0) return {};
    source.packing = Source::zlib;
    source.unpacked = 0;
    for (auto byte : old.size) source.unpacked = source.unpacked << 8 | byte;
  } else if (header.sh_flags & SHF_COMPRESSED) {
    constexpr std::uint32_t kZlib = 1, kZstd = 2;  // ELFCOMPRESS_*; older headers lack the second
    Elf64_Chdr packed;
    head = sizeof packed;
    if (!read_value(fd, source.at, packed)) return {};
    if (packed.ch_type != kZlib && packed.ch_type != kZstd) return {};
    source.packing = packed.ch_type == kZlib ? Source::zlib : Source::zstd;
    source.unpacked = packed.ch_size;
  }
  if (source.size <= head) return {};
  source.at += head;
  source.size -= head;
  if (source.packing == Source::zlib && source.unpacked / kZlibRatio > source.size) return {};
  return source;
}

/// Calls `visit` with the header and the name of each section that has bytes.
template <class Visit>
void each_section(Elf* elf, Visit visit) {
  symbols::find_section(elf, [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
    if (header.sh_type != SHT_NOBITS && header.sh_size) visit(header, name);
    return false;
  });
}

std::string hexadecimal(std::string_view bytes) {
  std::string all;
  for (unsigned char c : bytes)
    for (auto digit : {c >> 4, c & 15}) all += "0123456789abcdef"[digit];
  return all;
}

std::string small_section(int fd, const GElf_Shdr& header) {
  return symbols::read_at(fd, header.sh_offset, std::min<std::uint64_t>(header.sh_size, kMostLink));
}

}  // namespace

Result<DebugSections> DebugSections::read(int fd, bool relocatable) {
  static_assert(kNames.size() == kSections);
  const auto file = symbols::identity_of(fd);
  const auto elf = symbols::open_elf(fd, relocatable);
  if (!file || !elf || !symbols::is_native(elf.get()))
    return Error{"the file has no debug information"};

  DebugSections all;
  std::array<std::optional<Source>, kSections> sources;
  each_section(elf.get(), [&](const GElf_Shdr& header, std::string_view name) {
    if (header.sh_offset > file->size || header.sh_size > file->size - header.sh_offset)
      return ReadFailures::note(0);
    if (name == ".gnu_debugaltlink") {
      const auto text = small_section(fd, header);
      const auto end = text.find('\0');
      if (end == 0 || end == text.npos) return;
      all.alternate_ = text.substr(0, end);
      all.alternate_id_ = hexadecimal(text.substr(end + 1));
    }
    if (name == ".note.gnu.build-id") {
      const auto text = small_section(fd, header);
      Elf64_Nhdr note;
      const std::string_view owner(kNoteOwner, sizeof kNoteOwner);
      if (text.size() < sizeof note + owner.size()) return;
      std::memcpy(&note, text.data(), sizeof note);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == owner.size() &&
          text.compare(sizeof note, owner.size(), owner) == 0)
        all.build_id_ = hexadecimal(text.substr(sizeof note + owner.size(), note.n_descsz));
    }
    const bool with_z = name.starts_with(".zdebug_");
    const auto plain = with_z ? "." + std::string(name.substr(2)) : std::string(name);
    const auto known = std::ranges::find(kNames, plain);
    if (known == kNames.end()) return;
    auto& source = sources[static_cast<std::size_t>(known - kNames.begin())];
    if (!source) source = source_of(fd, header, with_z);
  });
  if (!sources[0] || !sources[2]) return Error{"the file has no debug information"};

  // Layout: ELF header, sections, section names, section headers.
  constexpr auto padded = [](std::uint64_t size) { return (size + 2 * kRoom - 1) / kRoom * kRoom; };
  std::uint64_t end = padded(sizeof(Elf64_Ehdr));
  for (std::size_t i = 0; i < kSections; i++) {
    if (!sources[i]) continue;
    all.places_[i] = {end, sources[i]->unpacked};
    if (sources[i]->unpacked > kMostBytes || (end += padded(sources[i]->unpacked)) > kMostBytes)
      return Error{"the file's debug information takes more than 2 GiB"};
  }
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  for (std::size_t i = 0; i < kSections; i++) {
    if (!sources[i]) continue;
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = SHT_PROGBITS;
    header.sh_offset = all.places_[i].at;
    header.sh_size = all.places_[i].size;
    header.sh_addralign = 1;
    headers.push_back(header);
    names += std::string(kNames[i]) + '\0';
  }
  Elf64_Shdr last{};
  last.sh_name = static_cast<Elf64_Word>(names.size());
  names += std::string(".shstrtab") + '\0';
  last.sh_type = SHT_STRTAB;
  last.sh_offset = end;
  last.sh_size = names.size();
  last.sh_addralign = 1;
  headers.push_back(last);
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
    if (sources[i] && !unpack(fd, *sources[i], image + all.places_[i].at))
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

DebugLink debug_link(int fd) {
  DebugLink link;
  const auto elf = symbols::open_elf(fd);
  if (!elf) return link;
  each_section(elf.get(), [&](const GElf_Shdr& header, std::string_view name) {
    if (name != ".gnu_debuglink" || !link.name.empty()) return;
    const auto text = small_section(fd, header);
    const auto length = text.find('\0');
    if (length == text.npos || length == 0 || length > 255) return;
    const auto at = (length + 4) / 4 * 4;  // after the terminator, aligned
    auto file = text.substr(0, length);
    if (at + sizeof link.checksum > text.size() || file.find('/') != file.npos || file == "." ||
        file == "..")
      return;
    std::memcpy(&link.checksum, text.data() + at, sizeof link.checksum);
    link.name = std::move(file);
  });
  return link;
}

bool has_checksum(int fd, std::uint32_t checksum) {
  std::vector<char> buffer(256 << 10);
  uLong crc = ::crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at <= kMostChecked;) {
    const auto got = read_bytes(fd, at, buffer.data(), buffer.size());
    if (got == 0) return crc == checksum;
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(got));
    at += got;
  }
  return false;
}

}  // namespace coretap::expression
