// Files of /proc and maps of run-time code, line by line.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "coretap/small_files.hpp"
#include "coretap/symbols.hpp"
#include "fuzz.hpp"
#include "kernel/kernel.hpp"
#include "symbols/perf_map.hpp"
#include "symbols/proc_maps.hpp"
#include "symbols/process_files.hpp"

using namespace coretap;

using symbols::Mapping;

namespace {

std::string written(const Mapping& map) {
  std::string path;
  for (const char c : map.path) path += c == '\n' ? std::string("\\012") : std::string(1, c);
  return fmt::format("{:x}-{:x} r-{}p {:x} {:x}:{:x} {}{}{}{}", map.start, map.end,
                     map.executable ? 'x' : '-', map.offset, map.device_major, map.device_minor,
                     map.inode, path.empty() ? "" : " ", path, map.deleted ? " (deleted)" : "");
}

}  // namespace

FUZZ(maps, bytes) {
  const fuzz::MemoryFile file(bytes);
  const auto content = symbols::read_mappings(file.fd());
  MUST(content.damaged + content.executable.size() <= content.lines);
  std::uint64_t end = 0;
  for (auto& map : content.executable) {
    MUST(map.executable && map.start < map.end && end <= map.start);
    MUST(map.offset + (map.end - map.start) >= map.offset);
    MUST(map.path.find('\0') == map.path.npos);
    end = map.end;
    if (map.path_cut) continue;
    const auto again = symbols::parse_mapping(written(map));
    MUST(again && again->start == map.start && again->end == map.end);
    MUST(again->offset == map.offset && again->inode == map.inode);
    MUST(again->path == map.path && again->deleted == map.deleted);
  }
}

FUZZ(perf_map, bytes) {
  const fuzz::MemoryFile file(bytes);
  const auto map = symbols::PerfMap::read(file.fd());
  const auto lines = static_cast<std::size_t>(std::ranges::count(bytes, '\n'));
  MUST(map.damaged() <= lines + 1);
  MUST(map.segments() <= 2 * lines);

  symbols::LineReader reader(file.fd(), 256, 1 << 16);
  for (std::string_view line; reader.next(line);) {
    std::uint64_t start = 0, size = 0;
    if (!symbols::take_hex(line, start) || !line.starts_with(' ')) continue;
    line.remove_prefix(1);
    symbols::take_hex(line, size);
    for (auto at : {start - 1, start, start + size / 2, start + size - 1, start + size}) {
      const auto hit = map.find(at);
      MUST(!hit.name || (hit.start <= at && hit.name[0] != '\0'));
      MUST(hit.name || map.segments() == 0 || hit.start == 0);
    }
  }
}

FUZZ(kallsyms, bytes) {
  const fuzz::MemoryFile file(bytes);
  const auto code = interrupt_code(file.path());
  MUST(code.softirq_end == 0 || code.softirq_begin < code.softirq_end);

  KernelSymbols kernel(file.path());
  const bool loaded{kernel.load()};
  MUST(!loaded || kernel.size() > 0);
  MUST(kernel.size() <= bytes.size() / 4);
  symbols::LineReader lines(file.fd(), 64, 1 << 16);
  for (std::string_view line; lines.next(line);) {
    std::uint64_t address = 0;
    if (!symbols::take_hex(line, address)) continue;
    for (auto at : {address - 1, address, address + 1}) {
      const auto symbol = kernel.find(at);
      MUST(loaded || !symbol.known());
      MUST(symbol.known() || symbol.offset == 0);
      MUST(symbol.offset <= 16 << 20 && symbol.offset <= at);
      if (symbol.known()) MUST(kernel.find(at - symbol.offset).offset == 0);
    }
  }
}

/// Reading line by line gives the same as splitting the whole text.
FUZZ(lines, bytes) {
  fuzz::Input input(bytes);
  const std::size_t longest = 1 + input.number<std::uint8_t>();
  auto rest = input.rest();
  const fuzz::MemoryFile file(rest);
  symbols::LineReader reader(file.fd(), longest, 1 << 20);
  for (std::string_view line; reader.next(line);) {
    const auto whole = rest.substr(0, rest.find('\n'));
    MUST(line == whole.substr(0, longest));
    MUST(reader.truncated() == (whole.size() > longest));
    MUST(reader.terminated() == (whole.size() < rest.size()));
    rest.remove_prefix(std::min(rest.size(), whole.size() + 1));
  }
  MUST(rest.empty());
}

/// Lists of CPUs, numbers, and lines of "Key: value".
FUZZ(small_files, bytes) {
  for (const int cpu : parse_cpus(bytes.substr(0, 256))) MUST(cpu >= 0 && cpu < 1 << 16);
  const fuzz::MemoryFile file(bytes);
  read_number(file.path());
  read_keyed(file.path(), "MemTotal");
}
