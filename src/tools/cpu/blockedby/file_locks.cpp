#include "tools/cpu/blockedby/file_locks.hpp"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "coretap/parse.hpp"
#include "cpu/blockedby.h"

namespace coretap::blocked {

namespace {

std::uint64_t number(const std::string& text, int base = 10) {
  return strtoull(text.c_str(), nullptr, base);
}

std::uint32_t kind_of(const std::string& word) {
  if (word == "FLOCK") return BLOCKED_FLOCK;
  if (word == "POSIX") return BLOCKED_FCNTL;
  return word == "OFDLCK" ? BLOCKED_OFD : BLOCKED_OTHER;
}

}  // namespace

// "3: POSIX  ADVISORY  WRITE 714 00:1b:527 10 29", and for a process that waits for it
// "3: -> POSIX  ADVISORY  WRITE 715 00:1b:527 10 29", where each level adds spaces.
std::map<std::uint32_t, FileLock> awaited_locks(std::string_view proc_locks) {
  std::map<std::uint32_t, FileLock> all;
  FileLock held;
  std::string of;
  while (!proc_locks.empty()) {
    const auto parts = words_in(take_until(proc_locks, '\n'));
    std::vector<std::string> line(parts.begin(), parts.end());
    if (line.size() < 6) continue;
    const bool waits = line[1] == "->";
    if (waits) line.erase(line.begin() + 1);
    if (line.size() < 6) continue;
    auto pid = strtol(line[4].c_str(), nullptr, 10);
    if (!waits) {
      of = line[0];
      held = {pid > 0 ? static_cast<std::uint32_t>(pid) : 0,
              number(line[5].substr(line[5].rfind(':') + 1)), kind_of(line[1])};
    } else if (line[0] == of && pid > 0) {
      all[static_cast<std::uint32_t>(pid)] = held;
    }
  }
  return all;
}

}  // namespace coretap::blocked
