#include "kernel/tracepoint_format.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/parse.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostText = 1 << 16;

/// "offset:8;" -> 8
std::uint32_t number_behind(std::string_view line, std::string_view word) {
  auto at = line.find(word);
  if (at == line.npos) return 0;
  line.remove_prefix(at + word.size());
  auto number = parse_unsigned(take_until(line, ';'));
  return number && *number < kMostText ? static_cast<std::uint32_t>(*number) : 0;
}

}  // namespace

TracepointFormat parse_tracepoint_format(std::string_view text) {
  constexpr std::string_view kField = "field:";
  TracepointFormat format;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    auto start = line.find(kField);
    if (line.starts_with("print fmt:")) break;
    if (start == line.npos) continue;
    auto rest = line.substr(start + kField.size());
    auto declaration = take_until(rest, ';');
    // "char disk[32]", "unsigned int opcode", "__data_loc unsigned char[] cmnd"
    auto name = declaration.substr(declaration.rfind(' ') + 1);
    name = name.substr(0, name.find('['));
    format.emplace(name,
                   TracepointMember{number_behind(rest, "offset:"), number_behind(rest, "size:")});
  }
  return format;
}

Result<TracepointFormat> tracepoint_format(std::string_view category, std::string_view name) {
  auto dir = tracefs();
  if (!dir) return dir.error();
  auto path = fmt::format("events/{}/{}/format", category, name);
  Fd fd(openat(*dir, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  ssize_t got = -1;
  while (fd.get() >= 0 && text.size() < kMostText && (got = read(fd.get(), part, sizeof part)) > 0)
    text.append(part, static_cast<std::size_t>(got));
  auto failed = got < 0 ? errno : ENOENT;
  auto format = parse_tracepoint_format(text);
  if (failed == EACCES)
    return Error{fmt::format("tracefs does not show {}:{}", category, name),
                 "it asks for CAP_DAC_READ_SEARCH",
                 {},
                 kUnsupported};
  if (format.empty())
    return Error{
        fmt::format("no tracepoint {}:{}", category, name), strerror(failed), {}, kUnsupported};
  return format;
}

}  // namespace coretap
