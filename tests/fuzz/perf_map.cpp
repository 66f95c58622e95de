#include <algorithm>

#include "fuzz.hpp"
#include "symbols/perf_map.hpp"

using namespace coretap;

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
