// The workload `blockio` on a private disk.
#pragma once

#include "../harness.hpp"

namespace coretap::tooltest {

inline constexpr std::uint64_t kSector = 512;

/// A loop device for each: no other process uses it, its sectors start at 0, and the file system's
/// own I/O is elsewhere. The workloads linger until the tools have ended, as the removal of a
/// workload's file is I/O.
inline Observed on_loop(const std::vector<Strings>& tools, const std::string& options) {
  return watch_all({{"blockio --make loop " + options, tools}})[0];
}

/// Lines whose value of this key has this suffix.
inline std::vector<Json> lines_ending(std::vector<Json> lines, const char* key, const char* end) {
  std::erase_if(lines, [&](auto& line) { return !line[key].str().ends_with(end); });
  return lines;
}

/// Times from the first event to the second of a disk's requests, matched by sector, in the
/// kernel's trace. `operation`: prefix of the operation letters.
inline std::vector<std::uint64_t> traced(const Trace& trace, const std::string& disk,
                                         const std::string& first, const char* operation = "") {
  auto dev = slurp("/sys/block/" + disk + "/dev");
  std::replace(dev.begin(), dev.end(), ':', ',');
  std::replace(dev.begin(), dev.end(), '\n', ' ');
  std::map<std::string, std::uint64_t> begun;
  std::vector<std::uint64_t> times;
  for (auto& event : trace.events()) {
    if (!event.words.starts_with(dev + operation)) continue;
    // "7,0 WS 4096 () 8 + 8 [blockio]"
    auto place = event.words.substr(event.words.find(") ") + 2);
    place = place.substr(0, place.find(" ["));
    if (event.name == first) {
      begun[place] = event.ns;
    } else if (auto found = begun.find(place); found != begun.end()) {
      times.push_back(event.ns - found->second);
      begun.erase(found);
    }
  }
  return times;
}

/// A row of the stress tests: writes, each counted under the key.
inline stress::Row writes_to_loop(const char* shown, const Strings& options = {}) {
  return count_row("blockio --make loop --count {n} --span 4m", 1500, shown, "count", options);
}

}  // namespace coretap::tooltest
