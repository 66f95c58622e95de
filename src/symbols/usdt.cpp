#include "symbols/usdt.hpp"

#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "symbols/elf_file.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMaxProbeNotes = 16 << 20;
constexpr std::size_t kMaxProbes = 65536;
constexpr std::size_t kMaxText = 1024;  // limit for provider, name, and each argument
constexpr std::size_t kMaxArguments = 12;
constexpr GElf_Word kProbeNote = 3;
constexpr char kOwner[] = "stapsdt";

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool take_number(std::string_view& text, std::int64_t& value) {
  auto rest = text;
  const bool negative = take_char(rest, '-');
  // Hexadecimal, as some compilers write large constants.
  const bool hex = rest.starts_with("0x");
  if (hex) rest.remove_prefix(2);
  std::uint64_t n = 0;
  if (!symbols::take_number(rest, n, hex ? 16 : 10)) return false;
  value = static_cast<std::int64_t>(negative ? -n : n);
  text = rest;
  return true;
}

std::string_view trim(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// "%rbp", "%rbp,%rax", "%rbp,%rax,8", ",%rax,8"
bool parse_x86_address(std::string_view text, UsdtArgument& a) {
  const auto part = [&] {
    const auto one = trim(text.substr(0, text.find(',')));
    text.remove_prefix(
        std::min(text.size(), text.find(',') == text.npos ? text.npos : text.find(',') + 1));
    return one;
  };
  const auto of_register = [](std::string_view name, std::string& to) {
    if (name.empty()) return true;
    if (!take_char(name, '%') || !is_name(name)) return false;
    to = name;
    return true;
  };
  if (!of_register(part(), a.base) || !of_register(part(), a.index)) return false;
  if (auto scale = part(); !scale.empty()) {
    std::int64_t n = 0;
    if (!take_number(scale, n) || !scale.empty() || (n != 1 && n != 2 && n != 4 && n != 8))
      return false;
    a.scale = static_cast<int>(n);
  }
  return text.empty() && (!a.base.empty() || !a.index.empty());
}

// "sp", "sp, 12", "x0, x1"
bool parse_arm_address(std::string_view text, UsdtArgument& a) {
  const auto comma = text.find(',');
  const auto base = trim(text.substr(0, comma));
  if (!is_name(base)) return false;
  a.base = base;
  if (comma == text.npos) return true;
  auto rest = trim(text.substr(comma + 1));
  take_char(rest, '#');
  if (take_number(rest, a.value)) return rest.empty();
  if (!is_name(rest)) return false;
  a.index = rest;
  return true;
}

// Parses size and sign of a value: "-4@", "8f@"; the rest is an assembler operand.
bool parse_argument(std::string_view text, UsdtArgument& a) {
  std::int64_t size = 0;
  if (!take_number(text, size)) return false;
  a.is_signed = size < 0;
  if (size < -8 || size > 8) return false;
  size = std::abs(size);
  if (size != 1 && size != 2 && size != 4 && size != 8) return false;
  a.size = static_cast<int>(size);
  a.floating = take_char(text, 'f');
  if (!take_char(text, '@') || text.empty()) return false;
  if (take_char(text, '$')) {
    a.where = UsdtArgument::constant;
    return take_number(text, a.value) && text.empty();
  }
  if (text.front() == '[') {
    a.where = UsdtArgument::in_memory;
    return text.back() == ']' && parse_arm_address(text.substr(1, text.size() - 2), a);
  }
  if (text.back() == ')') {
    a.where = UsdtArgument::in_memory;
    const auto open = text.find('(');
    if (open == text.npos) return false;
    auto displacement = text.substr(0, open);
    if (!displacement.empty() && (!take_number(displacement, a.value) || !displacement.empty()))
      return false;
    return parse_x86_address(text.substr(open + 1, text.size() - open - 2), a);
  }
  if (const char c = text.front(); (c >= '0' && c <= '9') || c == '-' || c == '#') {
    take_char(text, '#');
    a.where = UsdtArgument::constant;  // arm64 constants have no '$'
    return take_number(text, a.value) && text.empty();
  }
  take_char(text, '%');
  a.where = UsdtArgument::in_register;
  a.base = text;
  return is_name(text);
}

// Removes text up to its NUL from the front of `rest`; false if there is no NUL.
bool take_text(std::span<const char>& rest, std::string& text) {
  const auto* end = static_cast<const char*>(::memchr(rest.data(), '\0', rest.size()));
  if (end == nullptr) return false;
  const auto size = static_cast<std::size_t>(end - rest.data());
  if (size > kMaxText) return false;
  text.assign(rest.data(), size);
  rest = rest.subspan(size + 1);
  return true;
}

}  // namespace

std::optional<std::vector<UsdtArgument>> parse_usdt_arguments(std::string_view text) {
  std::vector<UsdtArgument> all;
  while (!(text = trim(text)).empty()) {
    if (all.size() >= kMaxArguments) return {};
    // Brackets may contain blanks.
    std::size_t end = 0;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ' '); ++end) {
      if (text[end] == '(' || text[end] == '[') ++depth;
      if (text[end] == ')' || text[end] == ']') --depth;
    }
    if (end > kMaxText || !parse_argument(text.substr(0, end), all.emplace_back())) return {};
    text.remove_prefix(end);
  }
  return all;
}

UsdtProbes read_usdt(int fd) {
  UsdtProbes found;
  const ElfHandle elf = open_elf(fd);
  if (!elf || !is_native(elf.get())) return found;
  found.readable = true;
  // prelink moves code after the notes were written: this section's address indicates by how much.
  std::uint64_t base = 0;
  Elf_Data* notes = nullptr;
  find_section(elf.get(), [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    if (header.sh_type == SHT_NOTE && notes == nullptr && name == ".note.stapsdt")
      notes = section_data(section, header, kMaxProbeNotes);
    else if (header.sh_type == SHT_PROGBITS && base == 0 && name == ".stapsdt.base")
      base = header.sh_addr;
    return false;
  });
  if (notes == nullptr) return found;
  const auto file = identity_of(fd);
  const auto size = file ? file->size : 0;
  const auto* bytes = static_cast<const char*>(notes->d_buf);
  GElf_Nhdr note;
  std::size_t owner_at = 0, text_at = 0;
  for (std::size_t at = 0, next;
       found.probes.size() < kMaxProbes &&
       (next = ::gelf_getnote(notes, at, &note, &owner_at, &text_at)) > at;
       at = next) {
    std::uint64_t addresses[3];  // of the probe, of .stapsdt.base at link time, of the semaphore
    if (note.n_type != kProbeNote || note.n_namesz != sizeof kOwner ||
        ::memcmp(bytes + owner_at, kOwner, sizeof kOwner) != 0 || note.n_descsz < sizeof addresses)
      continue;
    ::memcpy(addresses, bytes + text_at, sizeof addresses);
    std::span<const char> rest(bytes + text_at + sizeof addresses,
                               note.n_descsz - sizeof addresses);
    UsdtProbe probe;
    if (!take_text(rest, probe.provider) || !take_text(rest, probe.name) ||
        !take_text(rest, probe.arguments) || probe.name.empty())
      continue;
    const std::uint64_t moved = base != 0 && addresses[1] != 0 ? base - addresses[1] : 0;
    const auto place = file_offset(elf.get(), size, addresses[0] + moved, PF_X);
    const auto semaphore =
        addresses[2] != 0 ? file_offset(elf.get(), size, addresses[2] + moved, PF_W) : 0;
    if (!place || !semaphore) {
      ++found.outside;
      continue;
    }
    probe.offset = *place;
    probe.semaphore = *semaphore;
    found.probes.push_back(std::move(probe));
  }
  return found;
}

}  // namespace coretap::symbols
