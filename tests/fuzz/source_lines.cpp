// Source lines of addresses: DWARF, and the tables of Go programs.
#include "symbols/source_lines.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "fuzz.hpp"
#include "made_sections.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/go_lines.hpp"
#include "symbols/go_names.hpp"

using namespace coretap;
using namespace coretap::symbols;

namespace {

constexpr const char* kLineSections[] = {
    ".debug_info",   ".debug_line",    ".debug_abbrev",      ".debug_aranges",
    ".debug_addr",   ".debug_str",     ".debug_line_str",    ".debug_str_offsets",
    ".debug_ranges", ".gopclntab",     ".debug_rnglists",    ".noptrdata",
    ".text",         ".gnu_debuglink", ".note.gnu.build-id",
};

void check(const std::vector<SourcePlace>& places, std::size_t addresses) {
  MUST(places.size() == addresses);
  for (auto& place : places) {
    MUST(!place.frames.empty() || !place.why.empty());
    MUST(place.frames.size() <= 256);
    for (std::size_t i = 0; i < place.frames.size(); i++) {
      auto& f = place.frames[i];
      MUST(f.function.size() <= 4096 && f.file.size() <= 3 * 4096 + 2);
      MUST(f.function.find('\0') == f.function.npos && f.file.find('\0') == f.file.npos);
    }
  }
}

void check(int fd, std::vector<std::uint64_t> addresses) {
  std::ranges::sort(addresses);
  SourceLines lines(fd);
  const auto all = lines.find(addresses, std::chrono::seconds(2));
  check(all, addresses.size());
  // One at a time gives the same answers, unless time was short.
  for (std::size_t i = 0; i < addresses.size(); i += 5) {
    const auto one = lines.find({&addresses[i], 1}, std::chrono::seconds(2));
    check(one, 1);
    MUST(one[0].frames.size() == all[i].frames.size() || !all[i].why.empty());
  }
  if (const auto go = go_lines(fd, addresses); !go.empty()) check(go, addresses.size());
  const auto named = go_names(fd);
  MUST(named.functions.empty() || named.names.back() == 0);
  for (auto& f : named.functions) MUST(f.size > 0 && f.name < named.names.size());
}

}  // namespace

/// An ELF file, or eight addresses and sections, each after its number (with 0x80: compressed) and
/// a length of 16 bits.
FUZZ(source_lines, bytes) {
  if (bytes.starts_with(ELFMAG)) {
    const fuzz::MemoryFile file(bytes);
    std::vector<std::uint64_t> addresses;
    if (const auto elf = ElfSymbols::read(file.fd()))
      for (auto& f : elf->functions())
        if (addresses.size() < 64) addresses.insert(addresses.end(), {f.start, f.start + 5});
    check(file.fd(), addresses);
    return;
  }
  fuzz::Input input(bytes);
  std::vector<std::uint64_t> addresses(8);
  for (auto& address : addresses) address = input.number<std::uint64_t>();
  const fuzz::MemoryFile file(fuzz::with_sections(input, kLineSections));
  check(file.fd(), addresses);
}
