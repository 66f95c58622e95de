// Symbols and probes of ELF files.
#include <unistd.h>

#include "fuzz.hpp"
#include "program/function_returns.hpp"
#include "symbols/demangle.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/usdt.hpp"

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
  // A symbol takes more bytes in the file than in memory, unless it is in compressed debug data.
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
        accept(file.fd());  // damaged or not, the debug link names the file itself
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

FUZZ(demangle, bytes) {
  const auto name = symbols::demangle(bytes);
  MUST(name.size() <= 16 << 10 || name == bytes);
  MUST(bytes.empty() || !name.empty());
}

namespace {

void check_arguments(std::string_view text) {
  const auto arguments = parse_usdt_arguments(text);
  if (!arguments) return;
  MUST(arguments->size() <= 12);
  for (const auto& a : *arguments) {
    MUST(a.size == 1 || a.size == 2 || a.size == 4 || a.size == 8);
    MUST(a.scale == 1 || a.scale == 2 || a.scale == 4 || a.scale == 8);
    MUST((a.where == UsdtArgument::constant) == (a.base.empty() && a.index.empty()));
    MUST(fuzz::is_plain(a.base) && fuzz::is_plain(a.index));
  }
}

}  // namespace

/// Specifications of a probe's arguments.
FUZZ(usdt_arguments, bytes) { check_arguments(bytes); }

/// A file with notes.
FUZZ(usdt, bytes) {
  const fuzz::MemoryFile file(bytes);
  const auto found = read_usdt(file.fd());
  MUST(found.readable || found.probes.empty());
  for (const auto& probe : found.probes) {
    MUST(!probe.name.empty());
    MUST(probe.offset < bytes.size() && probe.semaphore < bytes.size());
    check_arguments(probe.arguments);
  }
}
