#include "tools/cpu/blockedby/kinds.hpp"

#include <fmt/format.h>

#include "coretap/small_files.hpp"
#include "coretap/syscalls.hpp"

namespace coretap::blocked {

namespace {

struct Words {
  std::string_view name, phrase;
};

constexpr Words kWords[BLOCKED_KINDS] = {
    {},
    {"mutex", "a mutex of the kernel"},
    {"rwsem:R", "a semaphore of the kernel, to read"},
    {"rwsem:W", "a semaphore of the kernel, to write"},
    {"mmap_lock:R", "mmap_lock, to read"},
    {"mmap_lock:W", "mmap_lock, to write"},
    {"pcpu-sem:R", "a per-CPU semaphore of the kernel, to read"},
    {"pcpu-sem:W", "a per-CPU semaphore of the kernel, to write"},
    {"rtmutex", "a real-time mutex of the kernel"},
    {"futex", "a futex"},
    {"futex-lock", "a lock of the program"},
    {"futex-mutex", "a mutex of the program"},
    {"futex-tid", "a robust mutex of the program"},
    {"futex-pi", "a PI mutex of the program"},
    {"thread", "the end of a thread"},
    {"flock", "a file lock (flock)"},
    {"fcntl", "a file lock (fcntl)"},
    {"ofd", "a lock of an open file (fcntl)"}};

}  // namespace

std::string_view object_name(std::uint32_t kind) {
  return kind < BLOCKED_KINDS ? kWords[kind].name : "";
}

std::uint32_t call_index(std::string_view name) {
  for (auto index : syscall_indices(name))
    if (index < CALLS_COMPAT) return index;
  return CALLS;
}

std::string waits_for(std::uint32_t kind, std::size_t reason) {
  if (kind < BLOCKED_KINDS && !kWords[kind].phrase.empty()) return std::string(kWords[kind].phrase);
  auto& r = wait_reasons()[reason];
  if (r.of == WaitClass::other) return "something that has no name";
  return std::string(r.doc);
}

std::string comm_of(std::uint32_t tid) {
  auto text = read_file(fmt::format("/proc/{}/comm", tid), 64).value_or("");
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string short_time(std::uint64_t ns) {
  auto n = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.3f} s", n / 1e9);
  if (ns >= 1'000'000) return fmt::format("{:.3f} ms", n / 1e6);
  return fmt::format("{:.1f} us", n / 1e3);
}

}  // namespace coretap::blocked
