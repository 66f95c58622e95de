#include "symbols/proc_maps.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols {
namespace {

constexpr std::size_t kMaxMapsLine = 32 << 10;         // PATH_MAX, every byte escaped, and the rest
constexpr std::uint64_t kMaxMapsBytes = 512ULL << 20;  // far above vm.max_map_count's default
constexpr std::size_t kMaxExecutable = 128 << 10;

// The kernel escapes a newline in a name as \012, and no other character.
std::string unescape(std::string_view text) {
  constexpr std::string_view kNewline = "\\012";
  std::string path;
  path.reserve(text.size());
  for (std::size_t at; (at = text.find(kNewline)) != text.npos;) {
    path.append(text.substr(0, at)).push_back('\n');
    text.remove_prefix(at + kNewline.size());
  }
  return path.append(text);
}

/// True if it may be a copy of a file's code.
bool is_unnamed(const Mapping& map) {
  return map.path.empty() || map.path.starts_with("//anon") || map.path.starts_with("[anon") ||
         map.path == "/anon_hugepage" || map.path == "/dev/zero";
}

/// Assigns the code between two mappings of one file to that file, if the offset is certain: both
/// are mapped as in the file, or one is code that continues there.
void give_to_file(std::span<Mapping> copies, const Mapping& before, const Mapping& after) {
  if (copies.empty() || !before.same_file(after)) return;
  const Mapping* by = nullptr;
  if (before.start - before.offset == after.start - after.offset ||
      (before.executable && before.end == copies.front().start))
    by = &before;
  else if (after.executable && after.start == copies.back().end)
    by = &after;
  if (by == nullptr || by->start < by->offset) return;
  const auto base = by->start - by->offset;
  for (auto& copy : copies) {
    const auto start = copy.start, end = copy.end;
    if (start < base) continue;
    copy = *by;
    copy.start = start;
    copy.end = end;
    copy.offset = start - base;
    copy.executable = true;
  }
}

}  // namespace

bool Mapping::same_file(const Mapping& other) const {
  return inode == other.inode && device_major == other.device_major &&
         device_minor == other.device_minor && path == other.path;
}

bool Mapping::has_file() const {
  // Shared anonymous memory has an inode too, but never contains a whole ELF file.
  return inode != 0 && path.starts_with('/') && !path.starts_with("//") && path != "/dev/zero" &&
         path != "/anon_hugepage" && !path.starts_with("/SYSV");
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  Mapping map;
  std::uint64_t major, minor;
  if (!take_hex(line, map.start) || !take_char(line, '-') || !take_hex(line, map.end) ||
      !take_char(line, ' ') || line.size() < 5)
    return {};
  map.file_start = map.start;
  map.file_end = map.end;
  const std::string_view rights = line.substr(0, 4);
  if ((rights[0] != 'r' && rights[0] != '-') || (rights[1] != 'w' && rights[1] != '-') ||
      (rights[2] != 'x' && rights[2] != '-') || (rights[3] != 'p' && rights[3] != 's'))
    return {};
  map.executable = rights[2] == 'x';
  line.remove_prefix(4);
  if (!take_char(line, ' ') || !take_hex(line, map.offset) || !take_char(line, ' ') ||
      !take_hex(line, major) || !take_char(line, ':') || !take_hex(line, minor) ||
      !take_char(line, ' ') || !take_number(line, map.inode, 10))
    return {};
  if (map.start >= map.end || major > UINT32_MAX || minor > UINT32_MAX ||
      map.offset > UINT64_MAX - (map.end - map.start))
    return {};
  map.device_major = static_cast<std::uint32_t>(major);
  map.device_minor = static_cast<std::uint32_t>(minor);
  if (!line.empty() && line.front() != ' ') return {};
  // The name is padded to a fixed column; it begins with '/' or '[', never with a space.
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.find('\0') != line.npos) return {};
  constexpr std::string_view kDeleted = " (deleted)";
  if (line.starts_with('/') && line.ends_with(kDeleted)) {
    map.deleted = true;
    line.remove_suffix(kDeleted.size());
  }
  map.path = unescape(line);
  return map;
}

MapsContent read_mappings(int fd) {
  MapsContent content;
  LineReader lines(fd, kMaxMapsLine, kMaxMapsBytes);
  std::optional<Mapping> before;  // last mapping of a file; number of code mappings since
  std::size_t copies = 0;
  for (std::string_view line; lines.next(line);) {
    ++content.lines;
    auto map = parse_mapping(line);
    if (!map) {
      ++content.damaged;
      continue;
    }
    map->path_cut = lines.truncated();
    if (map->has_file()) {
      if (before) give_to_file(std::span(content.executable).last(copies), *before, *map);
      before = map;
      copies = 0;
    }
    if (!map->executable || content.executable.size() >= kMaxExecutable) continue;
    if (is_unnamed(*map))
      copies++;
    else if (!map->has_file())
      before.reset();
    content.executable.push_back(std::move(*map));
  }
  // The kernel's list is sorted and disjoint, but mappings may change between two reads.
  auto& maps = content.executable;
  std::stable_sort(maps.begin(), maps.end(),
                   [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  std::uint64_t end = 0;
  std::erase_if(maps, [&](const Mapping& map) {
    if (map.start < end) return true;
    end = map.end;
    return false;
  });
  return content;
}

namespace {

Fd open_of(const std::string& proc_root, pid_t tgid, const char* name) {
  return open_regular(open_handle(proc_root + "/" + std::to_string(tgid) + name, false),
                      UINT64_MAX);
}

/// A field of /proc/PID/stat, counted from 1.
std::uint64_t stat_field(const std::string& proc_root, pid_t tgid, std::size_t wanted) {
  const std::string text = read_small_file(proc_root + "/" + std::to_string(tgid) + "/stat", 4096);
  const auto fields = stat_fields(text);
  return wanted < fields.size() ? parse_unsigned(fields[wanted]).value_or(0) : 0;
}

}  // namespace

MapsContent read_mappings(const std::string& proc_root, pid_t tgid) {
  const Fd fd = open_of(proc_root, tgid, "/maps");
  return fd ? read_mappings(fd.get()) : MapsContent();
}

std::string read_memory(const std::string& proc_root, pid_t tgid, std::uint64_t start,
                        std::uint64_t size) {
  const Fd fd = open_of(proc_root, tgid, "/mem");
  return fd ? read_at(fd.get(), start, size) : std::string();
}

std::uint64_t process_started(const std::string& proc_root, pid_t tgid) {
  return stat_field(proc_root, tgid, 22);
}

std::uint64_t process_stack_begin(const std::string& proc_root, pid_t tgid) {
  return stat_field(proc_root, tgid, 28);
}

}  // namespace coretap::symbols
