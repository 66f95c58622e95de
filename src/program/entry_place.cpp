// Where the entry of a function is probed (FileCode::entry_place).
//
// A probe on an instruction that the kernel executes in single-step mode takes 20 to 30 us in a
// virtual machine, 0.9 us without one; on one that it emulates 0.3 to 1.3 us. Compilers begin
// functions with endbr64 or mov, which are not emulated, before the first push, which is.
//
// A jump to between the two would count as a call, too. Direct jumps are searched in the whole
// file; in code that has data between instructions, a short one may not be found.
#include <algorithm>
#include <cstring>
#include <utility>

#include "coretap/small_files.hpp"
#include "program/function_returns.hpp"
#include "program/uprobe_proof.hpp"
#include "symbols/elf_file.hpp"

namespace coretap {

namespace {

using symbols::EntryStep;

/// Code of one file that is searched for jumps, in bytes. A file with more keeps its entries.
constexpr std::uint64_t kMostSearched = 64 << 20;

/// Reads all bytes of a part of the file; fewer if it is truncated.
std::vector<std::uint8_t> read_part(int fd, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(read_bytes(fd, offset, bytes.data(), bytes.size()));
  return bytes;
}

#if defined(__x86_64__)

/// Passes the targets of jumps and calls over 32 bits, wherever an instruction may begin.
template <class Mark>
void each_far_target(const std::vector<std::uint8_t>& code, std::uint64_t address, Mark mark) {
  for (std::size_t i = 0; i + 5 <= code.size(); i++) {
    const auto byte = code[i], before = i ? code[i - 1] : std::uint8_t{0};
    const bool conditional = before == 0x0f && byte >> 4 == 8,
               xbegin = before == 0xc7 && byte == 0xf8;
    if (byte != 0xe8 && byte != 0xe9 && !conditional && !xbegin) continue;
    std::int32_t distance = 0;
    memcpy(&distance, &code[i + 1], sizeof distance);
    mark(address + i + 5 + static_cast<std::uint64_t>(std::int64_t{distance}));
  }
}

/// A jump over 8 bits may begin with these bytes.
bool is_short_jump(std::uint8_t byte) {
  return (byte & 0xf0) == 0x70 || byte == 0xeb || (byte & 0xfc) == 0xe0;
}

#else

/// Passes the targets of all direct jumps and calls.
template <class Mark>
void each_far_target(const std::vector<std::uint8_t>& code, std::uint64_t address, Mark mark) {
  for (std::size_t i = -address & 3; i + 4 <= code.size(); i += 4) {
    const auto flow = symbols::flow_of(symbols::CodeBytes(code).subspan(i));
    const bool leads = flow.kind == symbols::Flow::branch || flow.kind == symbols::Flow::jump;
    if (leads || flow.target) mark(address + i + static_cast<std::uint64_t>(flow.target));
  }
}

bool is_short_jump(std::uint8_t) { return false; }

#endif

}  // namespace

/// True if code of this file may jump to one of these addresses, or if that is not known.
bool FileCode::jumped_to(symbols::CodeRange place) {
  constexpr std::uint64_t kShort = 130;  // the reach of jumps over 8 bits, with the instruction
  const auto end = place.start + place.size;
  for (auto at = place.start - std::min(place.start, kShort); at < end + kShort;) {
    auto* f = symbols_->find(at);
    auto part = f && f->size ? symbols::CodeRange{f->start, f->size}
                             : described_at(at).value_or(symbols::CodeRange{at, 0});
    if (part.size ? has_jump(part, place) : may_jump(at, place)) return true;
    at = std::max(at + 1, part.start + part.size);
  }
  return far_jumps_to(place);
}

/// True if a short jump to the place may begin at this address, where no function is known.
bool FileCode::may_jump(std::uint64_t address, symbols::CodeRange place) {
  std::uint8_t code[2] = {};
  auto offset = symbols_->offset_of_address(address);
  if (!offset || read_bytes(fd_, *offset, code, sizeof code) != sizeof code) return false;
  const auto distance = code[1] - ((code[1] & 0x80) << 1);
  const auto target = address + 2 + static_cast<std::uint64_t>(std::int64_t{distance});
  return is_short_jump(code[0]) && target - place.start < place.size;
}

/// True if another function begins there: by its symbol, or by unwind information.
bool FileCode::begins_within(symbols::CodeRange place) {
  for (auto at = place.start; at < place.start + place.size; at++) {
    auto* f = symbols_->find(at);
    auto part = described_at(at);
    if ((f && f->start == at) || (part && part->start == at)) return true;
  }
  return false;
}

bool FileCode::far_jumps_to(symbols::CodeRange place) {
  if (!targets_) {
    targets_.emplace();
    std::uint64_t all = 0;
    std::vector<GElf_Phdr> parts;
    const auto elf = symbols::open_elf(fd_);
    std::size_t headers = 0;
    if (elf && !elf_getphdrnum(elf.get(), &headers))
      for (std::size_t i = 0; i < headers; i++) {
        GElf_Phdr part;
        if (!gelf_getphdr(elf.get(), static_cast<int>(i), &part)) continue;
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
        if (part.p_filesz > kMostSearched || (all += part.p_filesz) > kMostSearched) return true;
        parts.push_back(part);
      }
    for (auto& part : parts) targets_->push_back({part.p_vaddr, std::vector<bool>(part.p_filesz)});
    auto mark = [&](std::uint64_t target) {
      for (auto& [begin, taken] : *targets_)
        if (target - begin < taken.size()) taken[target - begin] = true;
    };
    for (auto& part : parts)
      each_far_target(read_part(fd_, part.p_offset, part.p_filesz), part.p_vaddr, mark);
  }
  for (auto& [begin, taken] : *targets_) {
    const auto at = place.start - begin;
    if (at >= taken.size() || taken.size() - at < place.size) continue;
    const auto first = taken.begin() + static_cast<std::ptrdiff_t>(at),
               last = first + static_cast<std::ptrdiff_t>(place.size);
    return std::find(first, last, true) != last;
  }
  return true;
}

/// A jump of this code leads to the place, or an instruction is unknown. Without a place: it has a
/// jump to an address in a register or memory, other than by a table.
bool FileCode::has_jump(symbols::CodeRange range, symbols::CodeRange place, bool tables) {
  using symbols::Flow;
  auto offset = symbols_->offset_of_address(range.start);
  if (!offset || range.size > kMostCode || range.size > left_) return true;
  left_ -= range.size;
  const auto bytes = read_part(fd_, *offset, range.size);
  Flow flow;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto last = std::exchange(flow, symbols::flow_of(symbols::CodeBytes(bytes).subspan(at)));
    if (flow.kind == Flow::unknown) return true;
    const bool table = symbols::jumps_by_table(flow, last);
    if (!place.size && (table ? !tables : flow.kind == Flow::indirect)) return true;
    const auto target = range.start + at + static_cast<std::uint64_t>(flow.target);
    if ((flow.kind == Flow::branch || flow.kind == Flow::jump) && target - place.start < place.size)
      return true;
    at += flow.bytes;
  }
  return false;
}

symbols::EntryStep::Form FileCode::form_at(std::uint64_t offset) const {
  std::uint8_t code[16];
  return symbols::entry_step({code, read_bytes(fd_, offset, code, sizeof code)}).form;
}

symbols::EntryPlace FileCode::entry_place(std::uint64_t begin, EntryReads reads, bool crashes) {
  const auto kept = symbols::entry_registers(reads.arguments, reads.stack);
  constexpr std::size_t kMostBehind = 64;
  std::uint8_t bytes[kMostBehind + 16];
  const auto got = read_bytes(fd_, begin, bytes, sizeof bytes);
  symbols::CodeBytes code(bytes, got);
  const auto first = symbols::entry_step(code);
  const symbols::EntryPlace start{begin, first.form};
  if (first.form != EntryStep::stepped || is_go()) return start;
  std::size_t at = 0;
  auto step = first;
  while (!emulated_(step.form)) {
    if (!step.bytes || !step.harmless || step.changes & kept || (crashes && step.may_fault) ||
        at > kMostBehind)
      return start;
    at += step.bytes;
    step = symbols::entry_step(code.subspan(at));
  }
  const auto address = address_of(begin);
  if (!address) return start;
  const auto bounds = bounds_of(*address);
  if (bounds.size <= at || bounds.size > kMostCode) return start;
  const symbols::CodeRange place{*address + 1, at};
  if (begins_within(place) || jumped_to(place)) return start;
  // Compilers give the label of no switch a place before a push of the entry.
  if (has_jump(bounds, {}, step.form == EntryStep::push)) return start;
  return {begin + at, step.form};
}

}  // namespace coretap
