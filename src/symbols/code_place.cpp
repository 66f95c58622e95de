#include "symbols/code_place.hpp"

#include <unistd.h>

#include <cstring>
#include <string>
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

/// Numbers of an ELF file by their addresses; zeros where there are none.
class Numbers {
 public:
  explicit Numbers(int fd) : fd_(fd), elf_(open_elf(fd)) {
    const auto file = identity_of(fd);
    size_ = file ? file->size : 0;
  }
  Elf* elf() const { return elf_.get(); }

  template <class Number>
  Number at(std::uint64_t address) const {
    Number number{};
    const auto offset = loaded_offset(elf_.get(), size_, address);
    const auto bytes = offset ? read_at(fd_, *offset, sizeof number) : std::string();
    if (bytes.size() == sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  /// What is that far from `base`.
  std::uint64_t relative(std::uint64_t address, std::uint64_t base) const {
    return base + static_cast<std::uint64_t>(std::int64_t{at<std::int32_t>(address)});
  }

 private:
  int fd_;
  ElfHandle elf_;
  std::uint64_t size_ = 0;
};

struct Bounds {
  std::uint64_t begin = 0, size = 0;
};

/// Of the function that holds `address`, by the file's frame information (.eh_frame), which is left
/// in stripped files; no size: none is known. (Linux Standard Base, Exception Frames)
Bounds bounds_by_frames(int fd, std::uint64_t address) {
  const Numbers numbers(fd);
  std::uint64_t header = 0;
  for (std::size_t i = 0; numbers.elf() && i < kMaxSegments; i++)
    if (GElf_Phdr p; gelf_getphdr(numbers.elf(), static_cast<int>(i), &p) == nullptr)
      break;
    else if (p.p_type == PT_GNU_EH_FRAME)
      header = p.p_vaddr;
  // As every linker writes it: version 1, where .eh_frame is, how many, a table by begins.
  constexpr std::uint32_t kForm = 0x3b031b01;
  constexpr std::uint64_t kCount = 8, kTable = 12, kEntry = 8;
  if (!header || numbers.at<std::uint32_t>(header) != kForm) return {};
  std::uint64_t low = 0, high = numbers.at<std::uint32_t>(header + kCount);
  const auto begin_of = [&](std::uint64_t i) {
    return numbers.relative(header + kTable + i * kEntry, header);
  };
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    begin_of(middle) <= address ? low = middle + 1 : high = middle;
  }
  if (!low) return {};
  const auto begin = begin_of(low - 1);
  // Length, distance of what frames have in common, begin, size.
  const auto entry = numbers.relative(header + kTable + (low - 1) * kEntry + 4, header);
  const auto place = entry + 8;
  std::uint64_t size = 0;
  if (numbers.relative(place, place) == begin)
    size = numbers.at<std::uint32_t>(place + 4);
  else if (place + numbers.at<std::uint64_t>(place) == begin)
    size = numbers.at<std::uint64_t>(place + 8);
  return {begin, address >= begin && address - begin < size ? size : 0};
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
