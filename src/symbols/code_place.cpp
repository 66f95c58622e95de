#include "symbols/code_place.hpp"

#include <unistd.h>

#include <vector>

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMostBytes = 16 << 20;  // of a function
constexpr std::size_t kLongest = 16;            // an instruction, at least

CodePlace place(int fd, const ElfSymbols& symbols, const ElfSymbols::Function& f,
                std::uint64_t begin, std::uint64_t within) {
  CodePlace p{.function = symbols.name(f), .within = within, .offset = begin + within};
  p.size = f.size;
  p.state = CodePlace::beyond;
  if (within >= f.size) return p;
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

}  // namespace

CodePlace place_within(int fd, const ElfSymbols& symbols, std::uint64_t begin,
                       std::uint64_t within) {
  auto address = symbols.address_of_offset(begin);
  auto* f = address ? symbols.find(*address) : nullptr;
  if (!f || f->start != *address) return {};
  return place(fd, symbols, *f, begin, within);
}

CodePlace place_at(int fd, const ElfSymbols& symbols, std::uint64_t address) {
  auto* f = symbols.find(address);
  auto begin = f ? symbols.offset_of_address(f->start) : std::nullopt;
  if (!begin) return {};
  return place(fd, symbols, *f, *begin, address - f->start);
}

}  // namespace coretap::symbols
