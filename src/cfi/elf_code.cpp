#include "cfi/elf_code.hpp"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>

#include "coretap/small_files.hpp"

namespace coretap::unwind {
namespace {

constexpr std::size_t kMaxHeaders = 512;
constexpr std::size_t kMaxDynamic = 256;  // entries

void dynamic_segment(const Image& image, const Elf64_Phdr& header, ElfCode& elf) {
  std::vector<Elf64_Dyn> entries(
      std::min<std::uint64_t>(header.p_filesz / sizeof(Elf64_Dyn), kMaxDynamic));
  if (!image.read(header.p_offset, entries.data(), entries.size() * sizeof entries[0])) return;
  for (const auto& entry : entries) {
    if (entry.d_tag == DT_NULL) return;
    if (entry.d_tag == DT_INIT) elf.init = entry.d_un.d_ptr;
    if (entry.d_tag == DT_FINI) elf.fini = entry.d_un.d_ptr;
  }
}

void load_segment(const Elf64_Phdr& header, ElfCode& elf) {
  if (header.p_offset >= elf.size) return;
  const auto size = std::min(header.p_filesz, elf.size - header.p_offset);
  if (size == 0 || size > std::numeric_limits<std::uint64_t>::max() - header.p_vaddr) return;
  elf.segments.push_back({.offset = header.p_offset,
                          .address = header.p_vaddr,
                          .size = size,
                          .executable = (header.p_flags & PF_X) != 0});
}

std::optional<std::uint64_t> translate(const std::vector<ElfCode::Segment>& segments,
                                       std::uint64_t ElfCode::Segment::*from,
                                       std::uint64_t ElfCode::Segment::*to, std::uint64_t value) {
  for (const bool executable : {true, false})
    for (const auto& segment : segments)
      if (segment.executable == executable && value >= segment.*from &&
          value - segment.*from < segment.size)
        return segment.*to + (value - segment.*from);
  return {};
}

}  // namespace

Image::Image(int fd) : fd_(fd) {
  struct stat status;
  if (::fstat(fd, &status) == 0 && status.st_size > 0)
    size_ = static_cast<std::uint64_t>(status.st_size);
}

bool Image::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return false;
  if (fd_ >= 0) return read_bytes(fd_, offset, to, bytes) == bytes;
  if (bytes > 0) ::memcpy(to, memory_ + offset, bytes);
  return true;
}

std::optional<std::uint64_t> ElfCode::address_of_offset(std::uint64_t offset) const {
  return translate(segments, &Segment::offset, &Segment::address, offset);
}

std::optional<std::uint64_t> ElfCode::offset_of_address(std::uint64_t address) const {
  return translate(segments, &Segment::address, &Segment::offset, address);
}

std::optional<std::uint64_t> ElfCode::address_of_mapping(std::uint64_t offset,
                                                         std::uint64_t bytes) const {
  const Segment* best = nullptr;
  std::uint64_t most = 0;
  for (const auto& s : segments) {
    const auto from = std::max(offset, s.offset);
    const auto to = std::min(offset + bytes, s.offset + s.size);
    if (!s.executable || from >= to || to - from <= most) continue;
    most = to - from;
    best = &s;
  }
  if (best) return best->address + (offset - best->offset);
  return address_of_offset(offset);
}

ElfCode read_elf_code(const Image& image, std::uint16_t machine) {
  ElfCode elf{.machine = machine, .size = image.size()};
  unsigned char ident[EI_NIDENT];
  if (!image.read(0, ident, sizeof ident) || ::memcmp(ident, ELFMAG, SELFMAG) != 0) return elf;
  Elf64_Ehdr header;
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
    elf.state = ElfCode::foreign;
    return elf;
  }
  if (!image.read(0, &header, sizeof header)) return elf;
  if (header.e_machine != machine) {
    elf.state = ElfCode::foreign;
    return elf;
  }
  if ((header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxHeaders)
    return elf;
  std::vector<Elf64_Phdr> headers(header.e_phnum);
  if (!image.read(header.e_phoff, headers.data(), headers.size() * sizeof headers[0])) return elf;
  elf.state = ElfCode::usable;
  elf.entry = header.e_entry;
  for (const auto& each : headers) {
    if (each.p_type == PT_LOAD) load_segment(each, elf);
    if (each.p_type == PT_DYNAMIC) dynamic_segment(image, each, elf);
    if (each.p_type == PT_GNU_EH_FRAME) elf.frame_header = each.p_vaddr;
  }
  return elf;
}

}  // namespace coretap::unwind
