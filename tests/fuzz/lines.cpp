#include <algorithm>

#include "base/files.hpp"
#include "fuzz.hpp"
#include "kernel/kernel.hpp"
#include "symbols/process_files.hpp"

using namespace coretap;

/// Reading by lines is what splitting the whole text gives.
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
