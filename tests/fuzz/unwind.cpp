// Sources of unwind tables.
#include <map>
#include <optional>

#include "cfi/elf_code.hpp"
#include "cfi/frame_program.hpp"
#include "cfi/read_cfi.hpp"
#include "cfi/runtime_code.hpp"
#include "fuzz.hpp"
#include "unwind/go_frames.hpp"
#include "unwind/made_elf.hpp"
#include "unwind/made_go.hpp"
#include "unwind/table.hpp"

using namespace coretap;
using namespace coretap::unwind;

namespace {

void check_go_rule(const unwind_rule& rule, bool arm64 = false) {
  MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_CFA);
  MUST(arm64 ? rule.ra_slot <= 0 : rule.ra_slot == 0);
  MUST(rule.cfa != UNWIND_SP || rule.offset >= (arm64 ? 0 : 8));
  MUST(rule.bp_slot <= 0 && rule.bx_slot <= 0);
}

/// True if there are rows.
bool check_go(const Image& image, const ElfCode& elf) {
  GoFrames go(image, elf);
  std::optional<std::uint64_t> last;
  unwind_rule rule{};
  for (const auto* row = go.peek(); row; row = go.peek()) {
    MUST(!last || row->address > *last);
    MUST(!same_rule(row->rule, rule));
    check_go_rule(row->rule, elf.machine == EM_AARCH64);
    last = row->address;
    rule = row->rule;
    go.pop();
  }
  MUST(rule.cfa == UNWIND_NONE);
  return last.has_value();
}

void check(std::string_view file, std::uint16_t machine) {
  const Image image(file);
  const auto elf = read_elf_code(image, machine);
  if (elf.state != ElfCode::usable) return;
  std::map<std::uint64_t, unwind_rule> rows;
  const bool whole = read_cfi(image, elf, [&](std::uint64_t address, const unwind_rule& rule) {
    MUST(rows.empty() || rows.rbegin()->first < address);
    MUST(rows.empty() || !same_rule(rows.rbegin()->second, rule));
    MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_BP);
    MUST(rule.ra_slot == 0 || machine == EM_AARCH64);
    rows.emplace_hint(rows.end(), address, rule);
  });
  if (whole && !rows.empty()) MUST(rows.rbegin()->second.cfa == UNWIND_NONE);
  const bool has_go = check_go(image, elf);

  Rules rules;
  const auto table = make_table(image, elf, rules);
  for (auto& page : table.pages)
    MUST(page.first <= table.rows.size() && page.count <= table.rows.size() - page.first);
  for (auto& [address, rule] : rows) {
    const auto index = table.find(address);
    MUST(index < rules.all().size());
    // Stacks end at a program's entry, of which nothing is known.
    const bool ends =
        address == elf.entry && rule.cfa == UNWIND_NONE && rules.all()[index].cfa == UNWIND_END;
    if (!table.pages.empty() && index > Rules::kOther && !ends && !has_go)
      MUST(same_rule(rules.all()[index], rule));
  }
}

}  // namespace

/// A whole ELF file.
FUZZ(cfi, bytes) {
  for (const std::uint16_t machine : {EM_X86_64, EM_AARCH64}) check(bytes, machine);
}

/// .eh_frame alone; the first byte chooses how it is found.
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
  elf.machine = (how & 8) != 0 ? EM_AARCH64 : EM_X86_64;
  elf.frames = input.rest();
  check(elf.file_with(elf.table), elf.machine);
}

/// Go's table in a file that is otherwise sound: the first bytes choose its form, a part of it is
/// replaced.
FUZZ(go_table, bytes) {
  fuzz::Input input(bytes);
  const auto form = input.number<std::uint8_t>();
  test::MadeGo go;
  go.version = static_cast<test::MadeGo::Version>(form % 3);
  go.knows_text = (form & 4) != 0;
  go.before.resize(form & 8 ? 0x40 : 0);
  const auto flags = input.number<std::uint8_t>();
  const auto size = input.number<std::uint16_t>();
  test::MadeGo::Function function{.name = (form & 16) != 0 ? "runtime.sigreturn" : "main.last",
                                  .code = {},
                                  .steps = {},
                                  .flags = flags,
                                  .file = "a.s"};
  std::uint32_t at = 0;
  for (int steps = form >> 5; steps > 0; steps--) {
    at += input.number<std::uint8_t>();
    function.steps.emplace_back(at, input.number<std::int16_t>());
  }
  function.code = input.text(size);
  go.with(function);
  auto file = go.file();
  const auto table = file.rfind(test::raw(std::uint64_t{go.functions.size()}));
  const auto place = table - 8 + input.number<std::uint16_t>();
  const auto damage = input.rest();
  if (place < file.size())
    file.replace(place, std::min(damage.size(), file.size() - place),
                 damage.substr(0, file.size() - place));
  check(file, EM_X86_64);
}

FUZZ(go_code, bytes) {
  fuzz::Input input(bytes);
  const auto how = input.number<std::uint8_t>();
  std::vector<GoStep> steps;
  std::uint64_t address = 0x401000;
  for (int i = how >> 4; i >= 0; i--) {
    steps.push_back({address, input.number<std::int16_t>()});
    address += 1 + input.number<std::uint8_t>();
  }
  const auto rest = input.rest();
  std::vector<GoRow> rows;
  read_go_code({reinterpret_cast<const std::uint8_t*>(rest.data()), rest.size()}, steps,
               (how & 1) != 0, {.cfa = UNWIND_OTHER}, rows);
  std::uint64_t last = 0;
  for (auto& row : rows) {
    MUST(row.address > last && row.address < 0x401000 + rest.size());
    last = row.address;
    check_go_rule(row.rule);
  }
}

FUZZ(elf_code, bytes) {
  const auto elf = read_elf_code(Image(bytes));
  if (elf.state != ElfCode::usable) return;
  for (auto& s : elf.segments) {
    MUST(s.offset <= bytes.size() && s.size <= bytes.size() - s.offset);
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

FUZZ(frame_program, bytes) {
  fuzz::Input input(bytes);
  FrameContext context;
  context.code_align = input.number<std::uint8_t>();
  context.data_align = input.number<std::int8_t>();
  context.encoding = input.number<std::uint8_t>();
  const auto flags = input.number<std::uint8_t>();
  context.signal = (flags & 1) != 0;
  const bool arm64 = (flags & 2) != 0;
  context.registers = &frame_registers(arm64 ? EM_AARCH64 : EM_X86_64);
  std::uint64_t location = 0x10000, rows = 0;
  const auto seen = [&](std::uint64_t /*at*/, const Frame& frame) {
    rows++;
    const auto rule = rule_of(frame, context);
    MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_BP);
    MUST(rule.ra_slot == 0 || arm64);
  };
  const auto program = input.rest();
  const Bytes code({reinterpret_cast<const std::uint8_t*>(program.data()), program.size()}, 0x2000);
  Frame frame;
  run_frame_program(code, context, location, frame, seen);
  MUST(rows <= program.size());
  rule_of(frame, context);
}

FUZZ(arm64_code, bytes) {
  constexpr std::uint64_t kAddress = 0x401002;
  std::uint64_t last = kAddress;
  read_arm64_code({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, kAddress,
                  [&](std::uint64_t address, const unwind_rule& rule) {
                    MUST(address >= last && address <= kAddress + bytes.size());
                    last = address;
                    MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_CFA);
                  });
}

FUZZ(runtime_code, bytes) {
  constexpr std::uint64_t kAddress = 0x401000;
  std::optional<std::uint64_t> last;
  std::uint8_t rule_last = UNWIND_NONE;
  read_runtime_code({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, kAddress,
                    [&](std::uint64_t address, const unwind_rule& rule) {
                      MUST(!last || *last <= address);
                      MUST(address >= last && address <= kAddress + bytes.size());
                      last = address;
                      MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_BP);
                      last = address;
                      rule_last = rule.cfa;
                    });
  MUST(rule_last == UNWIND_NONE);
}
