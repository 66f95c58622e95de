#include "runtimes/ruby.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "cfi/read_cfi.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {

namespace {

/// As many bytes, or none.
std::string bytes_of(const unwind::Image& image, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  if (!image.read(offset, bytes.data(), bytes.size())) bytes.clear();
  return bytes;
}

template <typename T>
T object_at(std::string_view bytes, std::size_t at = 0) {
  T object{};
  if (at + sizeof object <= bytes.size()) std::memcpy(&object, bytes.data() + at, sizeof object);
  return object;
}

/// N of version 3.N; 0: another one.
unsigned minor_of(std::string_view version) {
  if (version.size() < 4 || !version.starts_with("3.") || version[3] != '.') return 0;
  return static_cast<unsigned>(version[2] - '0');
}

/// Addresses that the dynamic linker puts into data: of sections with addends, or (gABI, RELR) with
/// addresses and bits, where the data has the addends.
std::vector<std::uint64_t> addresses_in_data(int fd, const unwind::Image& image) {
  constexpr std::size_t kMost = 1 << 18;  // Ruby has 4,000; hostile files any number
  std::uint64_t bytes_left = 16 << 20, reads_left = kMost;
  const auto elf = symbols::open_elf(fd);
  std::vector<std::uint64_t> addresses;
  if (!elf) return addresses;
  const auto add_at = [&](std::uint64_t place) {
    std::uint64_t address = 0;
    if (!reads_left) return;
    reads_left--;
    const auto offset = symbols::file_offset(elf.get(), image.size(), place, PF_W);
    if (offset && image.read(*offset, &address, sizeof address)) addresses.push_back(address);
  };
  symbols::find_section(elf.get(), [&](Elf_Scn* section, const GElf_Shdr& header, auto) {
    const auto* data = header.sh_type == SHT_RELA || header.sh_type == SHT_RELR
                           ? symbols::section_data(section, header, bytes_left)
                           : nullptr;
    if (!data || !(header.sh_flags & SHF_ALLOC)) return false;
    const std::string_view bytes(static_cast<const char*>(data->d_buf), data->d_size);
    bytes_left -= std::min<std::uint64_t>(bytes_left, bytes.size());
    if (header.sh_type == SHT_RELA) {
      for (std::size_t at = 0; at < bytes.size() && addresses.size() < kMost;
           at += sizeof(Elf64_Rela))
        if (const auto entry = object_at<Elf64_Rela>(bytes, at);
            ELF64_R_TYPE(entry.r_info) == R_X86_64_RELATIVE)
          addresses.push_back(static_cast<std::uint64_t>(entry.r_addend));
      return false;
    }
    std::uint64_t next = 0;
    for (std::size_t at = 0; at < bytes.size() && reads_left; at += sizeof next) {
      const auto entry = object_at<std::uint64_t>(bytes, at);
      if (!(entry & 1)) add_at(entry);
      for (unsigned bit = 1; bit < 64 && entry & 1; bit++)
        if (entry >> bit & 1) add_at(next + std::uint64_t{bit - 1} * sizeof next);
      next = entry & 1 ? next + 63 * sizeof next : entry + sizeof next;
    }
    return false;
  });
  return addresses;
}

/// The interpreter's loop, vm_exec_core(): a table has the addresses within it of the code of each
/// of its 200 instructions; no other function has as many. 0: not found.
std::pair<std::uint64_t, std::uint64_t> loop_in(int fd, const unwind::Image& image) {
  constexpr std::size_t kFewest = 150, kMost = 1 << 18;
  struct Function {
    std::uint64_t begin, end;
    std::size_t within = 0;
  };
  std::vector<Function> functions;
  unwind::read_cfi(
      image, unwind::read_elf_code(image), [](auto, auto&) {},
      [&](std::uint64_t begin, std::uint64_t end) {
        if (functions.size() < kMost) functions.push_back({begin, end});
      });
  std::ranges::sort(functions, {}, &Function::begin);
  for (const auto address : addresses_in_data(fd, image)) {
    auto at = std::ranges::upper_bound(functions, address, {}, &Function::begin);
    if (at != functions.begin() && address > (--at)->begin && address < at->end) at->within++;
  }
  const auto most = std::ranges::max_element(functions, {}, &Function::within);
  if (most == functions.end() || most->within < kFewest) return {};
  return {most->begin, most->end};
}

/// The address that the four bytes before `next` give, relative to it.
std::uint64_t target_at(std::string_view code, std::uint64_t address, std::size_t next) {
  const std::int64_t distance = object_at<std::int32_t>(code, next - sizeof(std::int32_t));
  return address + next + static_cast<std::uint64_t>(distance);
}

bool has(std::string_view code, std::size_t at, std::string_view bytes) {
  return at <= code.size() && code.substr(at).starts_with(bytes);
}

/// Bytes of the table of places, as the process has it.
std::uint64_t table_bytes(std::uint32_t places) {
  const std::uint64_t more = places > RUBY_FIRST_PLACES ? places - RUBY_FIRST_PLACES : 0;
  return RUBY_FIRST_BYTES + (more + RUBY_BLOCK_PLACES - 1) / RUBY_BLOCK_PLACES * RUBY_BLOCK_BYTES;
}

}  // namespace

std::optional<runtime_file> ruby_in(int fd, std::uint64_t base) {
  constexpr std::size_t kMostCode = 256;
  constexpr unsigned kFirstMinor = 1, kLastMinor = 4;
  constexpr char kJump = '\xe9';
  enum { kReceiver, kNameOf, kVersion, kNames };
  constexpr std::array<std::string_view, kNames> kExported = {kRubyMark, "rb_id2str",
                                                              "ruby_version"};
  const auto found = symbols::find_exported(fd, kExported);
  if (!found[kReceiver].address || !found[kVersion].address) return {};
  runtime_file file{};
  file.kind = RUNTIME_RUBY;
  if (!found[kReceiver].offset || !found[kVersion].offset) return file;
  const unwind::Image image(fd);
  const auto read = [&](const symbols::ExportedSymbol& symbol) {
    return bytes_of(image, *symbol.offset, std::min<std::uint64_t>(symbol.size, kMostCode));
  };
  const auto minor = minor_of(read(found[kVersion]));
  const auto variable = ruby_variable_in(read(found[kReceiver]), found[kReceiver].address);
  const auto [begin, end] = loop_in(fd, image);
  if (minor < kFirstMinor || minor > kLastMinor || !variable || !end) return file;
  file.eval_begin = begin - base;
  file.eval_end = end - base;
  // Members of control frames (vm_core.h) and of code's location (there, too), and strings
  // (include/ruby/internal/core/rstring.h): what changed in 3.2 and 3.3.
  file.ruby = {.frame = static_cast<__u16>(minor >= 3 ? 56 : 64),
               .lines = static_cast<__u16>(minor >= 2 ? 112 : 120),
               .embedded = static_cast<__u16>(minor >= 2 ? 24 : 16),
               .has_module = variable->index.has_value(),
               .context = variable->offset};
  if (variable->index) file.runtime = *variable->index - base;
  const auto& name_of = found[kNameOf];
  if (!name_of.address || !name_of.offset) return file;
  const auto code = read(name_of);
  auto names = ruby_names_in(code, name_of.address);
  for (std::size_t at = 0; !names && at < code.size(); at++) {
    if (code[at] != kJump) continue;
    const auto target = target_at(code, name_of.address, at + 5);
    names = ruby_names_in(bytes_of(image, *name_of.offset + (target - name_of.address), kMostCode),
                          target);
  }
  if (names) file.other = names - base;
  return file;
}

std::optional<RubyVariable> ruby_variable_in(std::string_view code, std::uint64_t address) {
  using namespace std::string_view_literals;
  // The frame is the word at 16 of the context: mov rax, [rax + 16].
  constexpr auto kFrame = "\x48\x8b\x40\x10"sv;
  constexpr std::size_t kNear = 16;  // bytes between the two
  const auto result = [&](RubyVariable variable, std::size_t next) -> std::optional<RubyVariable> {
    const auto rest = code.substr(std::min(next, code.size()));
    if (rest.substr(0, kNear).find(kFrame) == rest.npos) return {};
    return variable;
  };
  for (std::size_t at = 0; at < code.size(); at++) {
    // lea rdi, [tls_index]; call __tls_get_addr; mov rax, [rax + offset].
    if (has(code, at, "\x48\x8d\x3d"sv)) {
      auto next = at + 7;
      RubyVariable variable{.index = target_at(code, address, next)};
      if (has(code, next, "\x66\x66\x48\xe8"sv))
        next += 8;
      else if (has(code, next, "\xe8"sv))
        next += 5;
      else
        continue;
      if (has(code, next, "\x48\x8b\x80"sv)) {
        variable.offset = object_at<std::int32_t>(code, next + 3);
        return result(variable, next + 7);
      }
      if (has(code, next, "\x48\x8b\x00"sv)) return result(variable, next + 3);
    }
    // mov rax, fs:[offset], or in a program whose offset the linker has filled in: mov rax, offset;
    // mov rax, fs:[rax].
    if (has(code, at, "\x64\x48\x8b\x04\x25"sv))
      return result({.index = {}, .offset = object_at<std::int32_t>(code, at + 5)}, at + 9);
    if (has(code, at, "\x48\xc7\xc0"sv) && has(code, at + 7, "\x64\x48\x8b\x00"sv))
      return result({.index = {}, .offset = object_at<std::int32_t>(code, at + 3)}, at + 11);
  }
  return {};
}

std::uint64_t ruby_names_in(std::string_view code, std::uint64_t address) {
  using namespace std::string_view_literals;
  // cmp [last number], r32; soon after it: mov r64, [array], which is 16 bytes behind.
  constexpr std::size_t kCompare = 6, kMove = 7, kNear = 16;
  constexpr std::uint8_t kOfAddress = 0xc7, kRelative = 5;
  const auto of_address = [&](std::size_t operand) {
    return (static_cast<std::uint8_t>(code[operand]) & kOfAddress) == kRelative;
  };
  for (std::size_t at = 0; at + kCompare + kMove <= code.size(); at++) {
    if (code[at] != '\x39' || !of_address(at + 1)) continue;
    const auto number = target_at(code, address, at + kCompare);
    for (auto move = at + kCompare; move < at + kCompare + kNear && move + kMove <= code.size();
         move++)
      if (has(code, move, "\x48\x8b"sv) && of_address(move + 2) &&
          target_at(code, address, move + kMove) == number + 16)
        return number + 16;
  }
  return 0;
}

std::string ruby_lines_of(std::string_view sent, pid_t pid, const ReadMemory& read,
                          std::size_t most) {
  constexpr std::size_t kWords = offsetof(ruby_lines, places) - offsetof(ruby_lines, entries_at);
  const auto head = object_at<ruby_lines>(sent);
  const auto entries = static_cast<std::uint32_t>(head.entries);
  const auto table = table_bytes(head.places), bytes = table + std::uint64_t{entries} * RUBY_ENTRY;
  if (sent.size() < sizeof head || !entries || bytes > most) return {};
  std::string lines(sizeof head.places + bytes, '\0');
  std::memcpy(lines.data(), &head.places, sizeof head.places);
  char* const to = lines.data() + sizeof head.places;
  if (sent.size() >= sizeof head + RUBY_TABLE + std::size_t{entries} * RUBY_ENTRY) {
    if (table > RUBY_TABLE) return {};
    std::memcpy(to, sent.data() + sizeof head, table);
    std::memcpy(to + table, sent.data() + sizeof head + RUBY_TABLE,
                std::size_t{entries} * RUBY_ENTRY);
    return lines;
  }
  std::array<char, kWords> now{};
  if (!read || pid <= 0 || head.positions ||
      !read(pid, head.entries_at, {to + table, bytes - table}) ||
      (entries > 1 && !read(pid, head.table_at, {to, table})) || !read(pid, head.at, now) ||
      std::memcmp(now.data(), &head.entries_at, kWords) != 0)
    return {};  // or it is the table of other code by now
  return lines;
}

std::optional<std::uint32_t> ruby_line(std::string_view table, std::uint32_t place) {
  constexpr unsigned kFirstBits = 7, kFirstInWord = 9, kRankBits = 9, kWordBits = 64;
  const auto places = object_at<std::uint32_t>(table);
  if (table.size() < sizeof places || place >= places) return {};
  table.remove_prefix(sizeof places);
  const auto bytes = table_bytes(places);
  if (table.size() < bytes + RUBY_ENTRY) return {};
  const auto entries = table.substr(bytes);
  std::uint64_t number = 1;
  if (entries.size() >= std::size_t{2} * RUBY_ENTRY) {
    if (place < RUBY_FIRST_PLACES) {
      const auto word = object_at<std::uint64_t>(table, place / kFirstInWord * 8);
      number = word >> place % kFirstInWord * kFirstBits & ((1U << kFirstBits) - 1);
    } else {
      const auto in_blocks = place - RUBY_FIRST_PLACES, in = in_blocks % RUBY_BLOCK_PLACES;
      const auto block =
          table.substr(RUBY_FIRST_BYTES + in_blocks / RUBY_BLOCK_PLACES * RUBY_BLOCK_BYTES);
      const auto word = in / kWordBits;
      // Entries before the block, before the word in it, and in the word.
      number = object_at<std::uint32_t>(block);
      if (word)
        number +=
            object_at<std::uint64_t>(block, 8) >> (word - 1) * kRankBits & ((1U << kRankBits) - 1);
      number += static_cast<unsigned>(std::popcount(object_at<std::uint64_t>(block, 16 + word * 8)
                                                    << (kWordBits - 1 - in % kWordBits)));
    }
  }
  if (!number || number > entries.size() / RUBY_ENTRY) return {};
  return object_at<std::uint32_t>(entries, (number - 1) * RUBY_ENTRY);
}

}  // namespace coretap::runtimes
