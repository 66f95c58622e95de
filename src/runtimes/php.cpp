#include "runtimes/php.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "cfi/elf_code.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {

std::optional<runtime_file> php_in(int fd, std::uint64_t base) {
  constexpr std::size_t kMostCode = 512;
  enum { kAsks, kLoop, kGlobals, kNames };
  constexpr std::array<std::string_view, kNames> kExported = {kPhpMark, "execute_ex",
                                                              "executor_globals"};
  const auto found = symbols::find_exported(fd, kExported);
  if (!found[kAsks].address || !found[kLoop].address) return {};
  runtime_file file{};
  file.kind = RUNTIME_PHP;
  file.runtime = found[kGlobals].address - base;
  file.eval_begin = found[kLoop].address - base;
  file.eval_end = file.eval_begin + found[kLoop].size;
  std::string code(std::min<std::uint64_t>(found[kAsks].size, kMostCode), '\0');
  if (found[kGlobals].address && found[kAsks].offset &&
      unwind::Image(fd).read(*found[kAsks].offset, code.data(), code.size()))
    file.php = php_layout_in(code);
  return file;
}

php_layout php_layout_in(std::string_view code) {
  // mov r64, [r64 + n]: 48, 8b, then the registers (10 above: n has 32 bits, 01: 8 bits; not 100
  // below, which has another byte).
  constexpr std::size_t kLong = 7, kShort = 4;
  constexpr std::uint8_t kWide = 0x48, kMove = 0x8b, kFunction = 24, kCaller = 48;
  constexpr std::uint32_t kLeastFile = 128, kMostFile = 256, kMostCurrent = 1024;
  std::vector<std::uint32_t> loads;
  bool function = false, caller = false;
  for (std::size_t at = 0; at + kLong <= code.size(); at++) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(code[at + i]); };
    if (byte(0) != kWide || byte(1) != kMove || (byte(2) & 7) == 4) continue;
    if (byte(2) >> 6 == 2) {
      std::uint32_t offset = 0;
      std::memcpy(&offset, code.data() + at + 3, sizeof offset);
      loads.push_back(offset);
      at += kLong - 1;
    } else if (byte(2) >> 6 == 1) {
      function |= byte(3) == kFunction;
      caller |= byte(3) == kCaller;
      at += kShort - 1;
    }
  }
  if (!function || !caller || loads.size() < 2) return {};
  // A name given for the file may come first; the function's file is last.
  const auto current = loads[loads.size() - 2], file = loads.back();
  if (current % 8 || current >= kMostCurrent || file % 8 || file < kLeastFile || file >= kMostFile)
    return {};
  return {.current = static_cast<__u16>(current), .file = static_cast<__u16>(file)};
}

}  // namespace coretap::runtimes
