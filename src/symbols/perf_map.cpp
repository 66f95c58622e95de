#include "symbols/perf_map.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <queue>

namespace coretap::symbols {
namespace {

constexpr std::uint64_t kMaxBytes = 256ULL << 20;
constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxEntries = 2 << 20;  // twenty times as many as in a large Java server

struct Entry {
  std::uint64_t start;
  std::uint32_t size;
  std::uint32_t name;
  std::uint32_t order;  // later ones win
  std::uint64_t end() const { return start + size; }
};

bool take_number(std::string_view& text, std::uint64_t& value) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  if (!take_hex(text, value)) return false;
  const std::size_t blanks = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(blanks);
  return blanks > 0;
}

bool parse(std::string_view line, Entry& entry, std::string_view& name) {
  std::uint64_t size;
  if (!take_number(line, entry.start) || !take_number(line, size)) return false;
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.empty() || line.front() == '\0' || size == 0 || size > UINT32_MAX ||
      entry.start > UINT64_MAX - size)
    return false;
  entry.size = static_cast<std::uint32_t>(size);
  name = line;
  return true;
}

}  // namespace

PerfMap PerfMap::read(int fd) {
  PerfMap map;
  std::vector<Entry> entries;
  LineReader lines(fd, kMaxLine, kMaxBytes);
  for (std::string_view line; lines.next(line);) {
    Entry entry{};
    std::string_view name;
    if (!lines.terminated() && !lines.truncated()) break;
    if (!parse(line, entry, name)) {
      ++map.damaged_;
      continue;
    }
    if (entries.size() == kMaxEntries) break;
    entry.name = map.names_.add(name);
    entry.order = static_cast<std::uint32_t>(entries.size());
    entries.push_back(entry);
  }

  // Sweep over the addresses; of the entries that cover an address the latest one wins.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.start < b.start; });
  const auto earlier = [](const Entry* a, const Entry* b) { return a->order < b->order; };
  std::priority_queue<const Entry*, std::vector<const Entry*>, decltype(earlier)> active(earlier);
  auto next = entries.cbegin();
  std::uint64_t at = 0;
  const Entry* last = nullptr;
  map.segments_.reserve(entries.size());
  for (;;) {
    while (!active.empty() && active.top()->end() <= at) active.pop();
    if (active.empty()) {
      if (next == entries.cend()) break;
      at = next->start;
    }
    for (; next != entries.cend() && next->start == at; ++next) active.push(&*next);
    const Entry* top = active.top();
    std::uint64_t stop = top->end();
    if (next != entries.cend()) stop = std::min(stop, next->start);
    const auto length = static_cast<std::uint32_t>(stop - at);
    if (top == last && map.segments_.back().start + map.segments_.back().length == at)
      map.segments_.back().length += length;
    else
      map.segments_.push_back({at, top->start, length, top->name});
    last = top;
    at = stop;
  }
  map.segments_.shrink_to_fit();
  return map;
}

PerfMap::Hit PerfMap::find(std::uint64_t address) const {
  auto it = std::upper_bound(segments_.begin(), segments_.end(), address,
                             [](std::uint64_t a, const Segment& s) { return a < s.start; });
  if (it == segments_.begin()) return {};
  --it;
  if (address - it->start >= it->length) return {};
  return {names_.get(it->name), it->symbol_start};
}

Fd open_perf_map(int directory, pid_t nspid, uid_t owner) {
  const Fd handle = open_handle_in(directory, "perf-" + std::to_string(nspid) + ".map", false);
  struct stat st;
  if (!handle || ::fstat(handle.get(), &st) != 0 || (st.st_uid != owner && st.st_uid != 0))
    return {};
  return open_regular(handle, kMaxBytes);
}

}  // namespace coretap::symbols
