// Rules as text, and the rows of a file, with checks of properties that all readers rely on.
#pragma once
#include "cfi/read_cfi.hpp"
#include "expect.hpp"
#include "unwind/made_elf.hpp"

namespace coretap::unwind::test {

/// "sp+16 bp@cfa-16 bx@cfa-24", "none", "plt 11", "*(bp-8)+0 bp@bp+0"
inline std::string text(const unwind_rule& rule) {
  const auto number = [](int n) { return (n < 0 ? "" : "+") + std::to_string(n); };
  constexpr const char* kNames[] = {"none", "end",  "sp",   "bp",   "signal", "bx",
                                    "r10",  "*(sp", "*(bp", "plt ", "vfork ", "other"};
  std::string out = kNames[rule.cfa];
  switch (rule.cfa) {
    case UNWIND_NONE:
    case UNWIND_END:
    case UNWIND_SIGNAL:
    case UNWIND_OTHER:
      break;
    case UNWIND_PLT:
      out += std::to_string(rule.more);
      break;
    case UNWIND_SP_DEREF:
    case UNWIND_BP_DEREF:
      out += number(rule.offset) + ")" + number(rule.more);
      break;
    default:
      out += number(rule.offset);
  }
  if (rule.bp == UNWIND_BP_AT_CFA) out += " bp@cfa" + number(rule.bp_slot * 8);
  if (rule.bp == UNWIND_BP_AT_BP) out += " bp@bp" + number(rule.bp_slot * 8);
  if (rule.bx_slot == UNWIND_BX_LOST)
    out += " bx?";
  else if (rule.bx_slot != 0)
    out += " bx@cfa" + number(rule.bx_slot * 8);
  if (rule.ra_slot != 0) out += " ra@cfa" + number(rule.ra_slot * 8);
  return out;
}

struct Row {
  std::uint64_t address;
  unwind_rule rule;
};

struct CfiTable {
  ElfCode elf;
  bool readable = false;
  std::vector<Row> rows;

  unwind_rule at(std::uint64_t address) const {
    unwind_rule rule{};
    for (const auto& row : rows) {
      if (row.address > address) break;
      rule = row.rule;
    }
    return rule;
  }
  /// "10000 sp+8, 10004 none"
  std::string text() const {
    std::string out;
    for (const auto& [address, rule] : rows) {
      char start[24];
      ::snprintf(start, sizeof start, "%s%lx ", out.empty() ? "" : ", ", address);
      out += start + test::text(rule);
    }
    return out;
  }
};

inline CfiTable read_table(const Image& image, std::uint16_t machine = EM_X86_64) {
  CfiTable table{.elf = read_elf_code(image, machine), .rows = {}};
  unwind_rule last{};
  std::uint64_t broken = 0;
  table.readable = read_cfi(image, table.elf, [&](std::uint64_t address, const unwind_rule& rule) {
    if ((!table.rows.empty() && address <= table.rows.back().address) || same_rule(last, rule) ||
        (rule.ra_slot != 0 && machine == EM_X86_64))
      ++broken;
    last = rule;
    table.rows.push_back({address, rule});
  });
  EXPECT_EQ(broken, 0u) << "rows out of order, or two with the same rule";
  EXPECT_EQ(last.cfa, UNWIND_NONE) << "the end is not closed";
  return table;
}
inline CfiTable read_table(const std::string& file) { return read_table(Image(file)); }
inline std::string rows_of(const MadeElf& elf) {
  const auto file = elf.file();
  return read_table(Image(file), elf.machine).text();
}

}  // namespace coretap::unwind::test
