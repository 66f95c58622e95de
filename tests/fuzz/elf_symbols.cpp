#include <unistd.h>

#include "fuzz.hpp"
#include "program/function_returns.hpp"
#include "symbols/elf_symbols.hpp"

using namespace coretap;
using namespace coretap::symbols;

namespace {

void check(const ElfSymbols& elf, std::size_t bytes) {
  const ElfSymbols::Function* last = nullptr;
  std::size_t named = 0;
  for (auto& f : elf.functions()) {
    MUST(!last || last->start < f.start);
    last = &f;
    MUST(std::strlen(elf.name(f)) <= NameArena::kMaxName);
    const auto* found = elf.find(f.start);
    MUST(!found || found->start <= f.start);
    elf.is_entry(f.start);
    elf.address_of_offset(f.start);
    named++;
  }
  // A symbol takes more bytes in the file than here, unless it is in compressed debug data.
  MUST(named <= (std::size_t{1} << 22) && (bytes > 0 || named == 0));
}

}  // namespace

FUZZ(elf_symbols, bytes) {
  if (const auto elf = ElfSymbols::read(bytes)) check(*elf, bytes.size());

  const fuzz::MemoryFile file(bytes);
  const auto elf = ElfSymbols::read(
      file.fd(), [&](const DebugFileKey& key, const std::function<bool(int)>& accept) {
        MUST(key.build_id.find_first_not_of("0123456789abcdef") == key.build_id.npos);
        MUST(key.debuglink.find('/') == key.debuglink.npos && key.debuglink != "..");
        accept(file.fd());  // damaged or not, it leads to itself
      });
  if (elf) check(*elf, bytes.size());

  std::string name = "main";
  if (elf && !elf->functions().empty()) name = elf->name(elf->functions().back());
  const auto place = find_function(file.fd(), name);
  MUST((place.state == FunctionPlace::found) == !place.offsets.empty());
  FileCode code(file.fd());
  for (auto offset : place.offsets) {
    MUST(offset < bytes.size());
    auto returns = code.returns(offset);
    MUST(returns.state == FunctionReturns::found || returns.offsets.empty());
    for (auto end : returns.offsets) MUST(end < bytes.size());
  }
}
