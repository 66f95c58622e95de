// Where the entry of a function is probed (FileCode::entry_place).
//
// A probe on an instruction that the kernel executes in single-step mode takes 20 to 30 us in a
// virtual machine, 0.9 us without one; on one that it emulates 0.3 to 1.3 us. Compilers begin
// functions with endbr64 or mov, which are not emulated, before the first push, which is.
#include <algorithm>
#include <cstring>

#include "coretap/small_files.hpp"
#include "kernel/uprobe_proof.hpp"
#include "program/function_returns.hpp"
#include "symbols/elf_file.hpp"

namespace coretap {

namespace {

using symbols::EntryStep;

/// Code of one file that is searched for jumps, in bytes. A file with more keeps its entries.
constexpr std::uint64_t kMostSearched = 64 << 20;
constexpr std::uint64_t kMostDecoded = 1 << 20;  // bytes of a function

/// Reads all bytes of a part of the file; fewer if it is truncated.
std::vector<std::uint8_t> read_part(int fd, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(read_bytes(fd, offset, bytes.data(), bytes.size()));
  return bytes;
}

/// Marks the targets of jumps and calls over 32 bits, wherever an instruction may begin.
void mark_targets(const std::vector<std::uint8_t>& code, std::vector<bool>& taken) {
  for (std::size_t i = 0; i + 5 <= code.size(); i++) {
    const auto byte = code[i];
    if (byte != 0xe8 && byte != 0xe9 && !(i && code[i - 1] == 0x0f && byte >> 4 == 8)) continue;
    std::int32_t distance = 0;
    memcpy(&distance, &code[i + 1], sizeof distance);
    const auto target = i + 5 + static_cast<std::uint64_t>(std::int64_t{distance});
    if (target < taken.size()) taken[target] = true;
  }
}

}  // namespace

/// True if code of this file may jump to one of these addresses, or if that is not known.
bool FileCode::jumped_to(symbols::CodeRange place) {
  constexpr std::uint64_t kShort = 130;  // the reach of jumps over 8 bits, with the instruction
  const auto end = place.start + place.size;
  for (auto at = place.start - std::min(place.start, kShort); at < end + kShort;) {
    auto* f = symbols_->find(at);
    auto part = f && f->size ? symbols::CodeRange{f->start, f->size}
                             : described_at(at).value_or(symbols::CodeRange{at, 0});
    if (has_jump(part, place)) return true;
    at = std::max(at + 1, part.start + part.size);
  }
  return far_jumps_to(place);
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
    for (auto& part : parts) {
      const auto code = read_part(fd_, part.p_offset, part.p_filesz);
      auto& targets = targets_->emplace_back(Targets{part.p_vaddr, {}});
      targets.taken.resize(code.size());
      mark_targets(code, targets.taken);
    }
  }
  for (auto& [begin, taken] : *targets_) {
    const auto at = place.start - begin;
    if (at >= taken.size() || taken.size() - at < place.size) continue;
    auto first = taken.begin() + static_cast<std::ptrdiff_t>(at);
    return std::find(first, first + static_cast<std::ptrdiff_t>(place.size), true) !=
           first + static_cast<std::ptrdiff_t>(place.size);
  }
  return true;
}

/// A jump of this code leads to the place, or an instruction is unknown. Without a place: it has a
/// jump to an address in a register or memory.
bool FileCode::has_jump(symbols::CodeRange range, symbols::CodeRange place) {
  using symbols::Flow;
  if (range.size > kMostDecoded) return true;
  auto offset = symbols_->offset_of_address(range.start);
  if (!offset) return range.size != 0;
  const auto bytes = read_part(fd_, *offset, range.size);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto flow = symbols::flow_of(symbols::CodeBytes(bytes).subspan(at));
    if (flow.kind == Flow::unknown) return true;
    if (!place.size && (flow.kind == Flow::indirect || flow.kind == Flow::by_table)) return true;
    const auto target = range.start + at + static_cast<std::uint64_t>(flow.target);
    if ((flow.kind == Flow::branch || flow.kind == Flow::jump) && target - place.start < place.size)
      return true;
    at += flow.bytes;
  }
  return false;
}

symbols::EntryPlace FileCode::entry_place(std::uint64_t begin, bool crashes) {
  constexpr std::size_t kMostBehind = 64;
  std::uint8_t bytes[kMostBehind + 16];
  const auto got = read_bytes(fd_, begin, bytes, sizeof bytes);
  symbols::CodeBytes code(bytes, got);
  const auto first = symbols::entry_step(code);
  const symbols::EntryPlace start{begin, first.form};
  if (first.form != EntryStep::stepped || go_) return start;
  std::size_t at = 0;
  auto step = first;
  while (!emulates(step.form)) {
    if (!step.bytes || !step.harmless || (crashes && step.may_fault) || at > kMostBehind)
      return start;
    at += step.bytes;
    step = symbols::entry_step(code.subspan(at));
  }
  if (!symbols_) symbols_ = symbols::ElfSymbols::read(fd_);
  const auto address = symbols_ ? symbols_->address_of_offset(begin) : std::nullopt;
  if (!address) return start;
  const auto bounds = bounds_of(*address);
  if (bounds.size <= at || bounds.size > kMostDecoded) return start;
  if (jumped_to({*address + 1, at})) return start;
  // A loop cannot lead to a push before it: the stack would grow with each turn.
  if (step.form != EntryStep::push && has_jump(bounds, {})) return start;
  return {begin + at, step.form};
}

}  // namespace coretap
