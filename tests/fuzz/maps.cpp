#include <fmt/format.h>

#include "fuzz.hpp"
#include "symbols/proc_maps.hpp"

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
