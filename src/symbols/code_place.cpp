#include "symbols/code_place.hpp"

#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "symbols/elf_file.hpp"

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMostBytes = 16 << 20;  // of a function
constexpr std::size_t kLongest = 16;            // an instruction, at least

CodePlace place(int fd, std::string name, std::uint64_t size, std::uint64_t begin,
                std::uint64_t within) {
  CodePlace p{.function = std::move(name), .within = within, .offset = begin + within};
  p.size = size;
  p.state = CodePlace::beyond;
  if (within >= size) return p;
  p.state = CodePlace::unreadable;
  if (within > kMostBytes) return p;
  std::vector<std::uint8_t> code(within + kLongest);
  auto n = pread(fd, code.data(), code.size(), static_cast<off_t>(begin));
  code.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  p.instruction = instruction_at(code, within);
  if (p.instruction.known)
    p.state = p.instruction.begin == within ? CodePlace::found : CodePlace::inside;
  return p;
}

struct Bounds {
  std::uint64_t begin = 0, size = 0;
};

/// Of the function that holds `address`, by the file's frame information (.eh_frame), which is left
/// in stripped files; no size: none is known. Begins are those of all compilers: 32 bits, from
/// where they stand on. (Linux Standard Base, Exception Frames)
Bounds bounds_by_frames(int fd, std::uint64_t address) {
  constexpr std::uint64_t kMaxSection = 256 << 20;
  constexpr std::uint32_t kLong = 0xffffffff;
  const auto elf = open_elf(fd);
  std::size_t names = 0;
  if (!elf || elf_getshdrstrndx(elf.get(), &names) != 0) return {};
  GElf_Shdr header{};
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf.get(), section)) != nullptr) {
    const char* name = gelf_getshdr(section, &header) != nullptr
                           ? elf_strptr(elf.get(), names, header.sh_name)
                           : nullptr;
    if (name != nullptr && std::string_view(name) == ".eh_frame") break;
  }
  const auto* data = section != nullptr ? section_data(section, header, kMaxSection) : nullptr;
  if (data == nullptr) return {};
  const auto number = [&](std::uint64_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, static_cast<const char*>(data->d_buf) + at, sizeof value);
    return value;
  };
  constexpr std::uint64_t kEntry = 16;  // length, what it shares with others, begin, size
  for (std::uint64_t at = 0; at + kEntry <= data->d_size;) {
    const auto length = number(at);
    const auto place = header.sh_addr + at + 8;
    const auto begin =
        place + static_cast<std::uint64_t>(std::int64_t{std::int32_t(number(at + 8))});
    if (length == kLong) break;
    if (length != 0 && number(at + 4) != 0 && address - begin < number(at + 12))
      return {begin, number(at + 12)};
    at += 4 + std::uint64_t{length};
  }
  return {};
}

}  // namespace

CodePlace place_within(int fd, const ElfSymbols& symbols, std::uint64_t begin,
                       std::uint64_t within) {
  auto address = symbols.address_of_offset(begin);
  auto* f = address ? symbols.find(*address) : nullptr;
  if (!f || f->start != *address) return {};
  return place(fd, symbols.name(*f), f->size, begin, within);
}

CodePlace place_at(int fd, const ElfSymbols& symbols, std::uint64_t address) {
  auto* f = symbols.find(address);
  const auto bounds = f ? Bounds{f->start, f->size} : bounds_by_frames(fd, address);
  const auto begin = symbols.offset_of_address(bounds.begin);
  if (!begin || !bounds.size) return {};
  auto name = f ? std::string(symbols.name(*f)) : fmt::format("{:#x}", bounds.begin);
  return place(fd, std::move(name), bounds.size, *begin, address - bounds.begin);
}

}  // namespace coretap::symbols
