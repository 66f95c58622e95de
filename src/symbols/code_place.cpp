#include "symbols/code_place.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coretap/small_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMostBytes = 16 << 20;  // maximum size of a function
constexpr std::size_t kLongest = 16;            // no instruction is longer

CodePlace place(int fd, std::string name, std::uint64_t size, std::uint64_t begin,
                std::uint64_t within) {
  CodePlace p{.function = std::move(name), .within = within, .offset = begin + within};
  p.size = size;
  p.state = CodePlace::beyond;
  if (within >= size) return p;
  p.state = CodePlace::unreadable;
  if (within > kMostBytes) return p;
  std::vector<std::uint8_t> code(within + kLongest);
  code.resize(read_bytes(fd, begin, code.data(), code.size()));
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
  return place(fd, symbols.name(*f), f->size, begin, within);
}

CodePlace place_at(int fd, const ElfSymbols& symbols, std::uint64_t address,
                   const DescribedAt& described) {
  const auto* f = symbols.find(address);
  std::optional<CodeRange> code;
  if (f) code = {f->start, f->size};
  if (!f && described) code = described(address);
  const auto begin = code ? symbols.offset_of_address(code->start) : std::nullopt;
  if (!begin || !code->size) return {};
  auto name = f ? std::string(symbols.name(*f)) : fmt::format("{:#x}", code->start);
  return place(fd, std::move(name), code->size, *begin, address - code->start);
}

}  // namespace coretap::symbols
