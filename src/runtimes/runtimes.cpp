#include "runtimes/runtimes.hpp"

#include <array>

#include "runtimes/hotspot.hpp"
#include "runtimes/php.hpp"
#include "runtimes/python.hpp"
#include "runtimes/ruby.hpp"
#include "runtimes/v8.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {

std::optional<runtime_file> runtime_in(int fd, std::uint64_t base) {
  constexpr std::array kMarks = {kPythonMark, kV8Mark, kHotSpotMark, kPhpMark, kRubyMark};
  const auto found = symbols::find_exported(fd, kMarks);
  if (found[0].address) return python_in(fd, base);
  if (found[1].address) return v8_in(fd);
  if (found[2].address) return hotspot_in(fd, base);
  if (found[3].address) return php_in(fd, base);
  if (found[4].address) return ruby_in(fd, base);
  return {};
}

runtime_kind kind_of(std::uint64_t word) {
  const auto number = (word & ~(STACK_RUNTIME | STACK_EXACT)) >> RUNTIME_PLACE_BITS;
  const auto kind = number ? number & RUNTIME_KIND_MASK
                           : (word & RUNTIME_PLACE_MASK) >> RUNTIME_MARK_BITS & RUNTIME_KIND_MASK;
  return kind < RUNTIME_KINDS ? static_cast<runtime_kind>(kind) : RUNTIME_NONE;
}

std::string_view name_of(runtime_kind kind) {
  switch (kind) {
    case RUNTIME_PYTHON:
      return "[python]";
    case RUNTIME_V8:
      return "[v8]";
    case RUNTIME_HOTSPOT:
      return "[java]";
    case RUNTIME_PHP:
      return "[php]";
    case RUNTIME_RUBY:
      return "[ruby]";
    default:
      return "[unknown]";
  }
}

bool has_loop(runtime_kind kind) {
  return kind == RUNTIME_PYTHON || kind == RUNTIME_PHP || kind == RUNTIME_RUBY;
}

}  // namespace coretap::runtimes
