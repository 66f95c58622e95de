#include "coretap/small_files.hpp"

#include "base/read_failures.hpp"
#include "base/recall.hpp"
#include "base/uninterrupted.hpp"
#include "coretap/parse.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace coretap {

namespace {

/// Files about the machine, which recordings have; not those about a process, nor the users' own.
bool is_of_machine(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (path.starts_with("/sys/")) return true;
  return path.starts_with(kProc) && path.size() > kProc.size() &&
         !(path[kProc.size()] >= '0' && path[kProc.size()] <= '9') &&
         !path.starts_with("/proc/self/");
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::size_t limit) {
  if (!recall) return read_file_at(AT_FDCWD, path, limit);
  if (!replaying() && !is_of_machine(path)) return read_file_at(AT_FDCWD, path, limit);
  const auto answer = recalled(Ask::file, path, [&] {
    const auto text = read_file_at(AT_FDCWD, path, limit);
    return text ? "+" + *text : std::string("-");
  });
  if (!answer.starts_with('+')) {
    errno = ENOENT;
    return std::nullopt;
  }
  return answer.substr(1);
}

std::size_t read_bytes(int fd, std::uint64_t at, void* to, std::size_t size) {
  std::size_t have = 0;
  while (have < size) {
    auto got = uninterrupted([&] {
      return pread(fd, static_cast<char*>(to) + have, size - have, static_cast<off_t>(at + have));
    });
    if (got < 0) ReadFailures::note(errno);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  return have;
}

std::optional<std::string> read_file_at(int directory, const std::string& path, std::size_t limit) {
  int fd = uninterrupted([&] { return openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while (text.size() < limit &&
         (n = uninterrupted([&] { return read(fd, buffer, sizeof buffer); })) > 0)
    text.append(buffer, static_cast<std::size_t>(n));
  auto failed = errno;
  close(fd);
  errno = failed;
  if (n < 0) return std::nullopt;
  if (text.size() > limit) text.resize(limit);
  return text;
}

namespace {

/// The number at the start of a text.
std::optional<long long> first_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const auto number = strtoll(copy.c_str(), &end, 10);
  if (end == copy.c_str()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<long long> read_number(const std::string& path) {
  auto text = read_file(path, 64);
  if (!text) return std::nullopt;
  return first_number(*text);
}

std::optional<long long> read_keyed(const std::string& path, std::string_view key) {
  return keyed_number(read_file(path).value_or(""), key);
}

std::optional<long long> keyed_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    if (take_until(line, ':') == key) return first_number(line);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> named_number(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    if (take_until(line, ' ') == name) return parse_unsigned(line);
  }
  return std::nullopt;
}

std::vector<std::string_view> stat_fields(std::string_view text) {
  auto after = text.rfind(')');  // a name may contain any character
  if (after == text.npos) return {};
  auto fields = words_in(text.substr(after + 1));
  fields.insert(fields.begin(), 3, {});
  return fields;
}

void open_standard_files() {
  // open() returns the lowest free number.
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
        open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
      _exit(1);
}

std::uint64_t memory_kb(std::string_view name) {
  return static_cast<std::uint64_t>(read_keyed("/proc/meminfo", name).value_or(0));
}

}  // namespace coretap
