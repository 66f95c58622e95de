#include "cfi/elf_code.hpp"

#include "fuzz.hpp"

using namespace coretap;
using namespace coretap::unwind;

FUZZ(elf_code, bytes) {
  const auto elf = read_elf_code(MemoryImage(bytes));
  if (elf.state != ElfCode::usable) return;
  for (auto& s : elf.segments) {
    MUST(s.offset + s.size >= s.offset && s.address + s.size >= s.address);
    for (auto at : {s.offset, s.offset + s.size / 2, s.offset + s.size - 1}) {
      const auto address = elf.address_of_offset(at);
      if (!address || s.size == 0) continue;
      const auto back = elf.offset_of_address(*address);
      MUST(back);
    }
    elf.address_of_mapping(s.offset & ~0xfffULL, 0x1000);
  }
}
