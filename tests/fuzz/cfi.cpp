#include "cfi/read_cfi.hpp"

#include <map>

#include "fuzz.hpp"
#include "unwind/made_elf.hpp"
#include "unwind/table.hpp"

using namespace coretap;
using namespace coretap::unwind;

namespace {

bool same(const unwind_rule& a, const unwind_rule& b) { return !std::memcmp(&a, &b, sizeof a); }

void check(std::string_view file) {
  const MemoryImage image(file);
  const auto elf = read_elf_code(image);
  if (elf.state != ElfCode::usable) return;
  std::map<std::uint64_t, unwind_rule> rows;
  const bool whole = read_cfi(image, elf, [&](std::uint64_t address, const unwind_rule& rule) {
    MUST(rows.empty() || rows.rbegin()->first < address);
    MUST(rows.empty() || !same(rows.rbegin()->second, rule));
    MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_BP && rule.pad == 0);
    rows.emplace_hint(rows.end(), address, rule);
  });
  if (whole && !rows.empty()) MUST(rows.rbegin()->second.cfa == UNWIND_NONE);

  Rules rules;
  const auto table = make_table(image, elf, rules);
  for (auto& page : table.pages)
    MUST(page.first <= table.rows.size() && page.count <= table.rows.size() - page.first);
  for (auto& [address, rule] : rows) {
    const auto index = table.find(address);
    MUST(index < rules.all().size());
    if (!table.pages.empty() && index > Rules::kOther) MUST(same(rules.all()[index], rule));
  }
}

}  // namespace

/// A whole ELF file.
FUZZ(cfi, bytes) { check(bytes); }

/// .eh_frame alone; the first byte says how it is found.
FUZZ(eh_frame, bytes) {
  fuzz::Input input(bytes);
  test::MadeElf elf;
  const auto how = input.number<std::uint8_t>();
  elf.finds = static_cast<test::MadeElf::Finds>(how % 3);
  elf.table_encoding = (how & 4) != 0 ? 0x1b : 0x3b;
  for (int entries = how >> 6; entries > 0; entries--) {
    const auto code = input.number<std::uint16_t>(), frame = input.number<std::uint16_t>();
    elf.table.emplace_back(test::kCode + code, test::kFrames + frame);
  }
  elf.frames = input.rest();
  check(elf.file_with(elf.table));
}
