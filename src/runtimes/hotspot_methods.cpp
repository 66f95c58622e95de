#include "runtimes/hotspot_methods.hpp"

#include <algorithm>
#include <cstring>

namespace coretap::runtimes {

std::optional<std::uint8_t> HotSpotNumbers::byte() {
  if (bytes_.empty()) return {};
  const auto value = static_cast<std::uint8_t>(bytes_[0]);
  bytes_.remove_prefix(1);
  return value;
}

std::optional<std::uint32_t> HotSpotNumbers::number() {
  constexpr std::uint32_t kLow = 192;
  constexpr int kMostBytes = 5, kBits = 6;
  std::uint32_t sum = 0;
  for (int i = 0; i < kMostBytes; i++) {
    const auto next = byte();
    if (!next) return {};
    sum += (std::uint32_t{*next} - least_) << (i * kBits);
    if (*next < kLow) break;
  }
  return sum;
}

std::optional<std::int32_t> HotSpotNumbers::signed_number() {
  const auto sum = number();
  if (!sum) return {};
  return static_cast<std::int32_t>(*sum >> 1 ^ (0U - (*sum & 1)));
}

std::uint32_t hotspot_line(unsigned version, std::string_view table, std::uint32_t bytecode) {
  constexpr std::uint8_t kEnd = 0, kNumbers = 0xff, kLineBits = 3, kLineMask = 7;
  constexpr std::int64_t kMostLine = 1 << 16;           // two bytes in a class file
  constexpr unsigned kLastKnown = 17, kNextKnown = 20;  // between them, numbers have changed
  if (version > kLastKnown && version < kNextKnown) return 0;
  HotSpotNumbers in(version, table);
  std::int64_t at = 0, line = 0, found = 0;
  while (const auto next = in.byte()) {
    if (*next == kEnd) return static_cast<std::uint32_t>(found);
    if (*next == kNumbers) {
      const auto forward = in.signed_number(), lines = in.signed_number();
      if (!forward || !lines) break;
      at += *forward;
      line += *lines;
    } else {
      at += *next >> kLineBits;
      line += *next & kLineMask;
    }
    if (at < 0 || line < 0 || line >= kMostLine) return 0;
    if (at <= bytecode) found = line;
  }
  return static_cast<std::uint32_t>(found);  // the rest was not sent
}

std::string class_name(std::string_view internal) {
  // "+0x0000000800c03000": a class that was made at run time, here.
  if (auto at = internal.rfind("+0x"); at != std::string_view::npos)
    internal = internal.substr(0, at);
  std::string name(internal);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::string method_name(std::string_view internal, std::string_view name) {
  auto full = class_name(internal);
  if (!full.empty()) full += '.';
  return full.append(name);
}

namespace {

template <class Number>
bool read(Pages& memory, std::uint64_t address, Number& to) {
  return memory.read(address, &to, sizeof to);
}

/// Empty: it cannot be read.
std::string symbol_at(Pages& memory, const hotspot_layout& at, std::uint64_t symbol) {
  std::uint16_t length = 0;
  if (!symbol || !read(memory, symbol + at.symbol_length, length)) return {};
  std::string text(std::min<std::size_t>(length, RUNTIME_NAME), '\0');
  if (!memory.read(symbol + at.symbol_body, text.data(), text.size())) return {};
  if (length > text.size()) text += "...";
  return text;
}

/// The same of the Symbol whose index in a ConstantPool is at `index_at`.
std::string pool_text(Pages& memory, const hotspot_layout& at, std::uint64_t constants,
                      std::uint64_t index_at) {
  std::uint16_t index = 0;
  std::uint32_t length = 0;
  std::uint64_t symbol = 0;
  if (!read(memory, index_at, index) || !read(memory, constants + at.pool_length, length) ||
      !index || index >= length ||
      !read(memory, constants + at.pool_bytes + index * sizeof symbol, symbol))
    return {};
  return symbol_at(memory, at, symbol);
}

/// The table of lines is behind the bytecodes.
std::string lines_of(Pages& memory, const hotspot_layout& at, std::uint64_t const_method) {
  constexpr std::uint16_t kHasLines = 1;
  std::uint16_t flags = 0, code = 0;
  std::uint32_t words = 0;
  if (!read(memory, const_method + at.const_method_flags, flags) ||
      !read(memory, const_method + at.const_method_size, words) ||
      !read(memory, const_method + at.code_size, code) || !(flags & kHasLines))
    return {};
  const std::uint64_t begin = at.const_method_bytes + code, end = words * std::uint64_t{8};
  if (end <= begin) return {};
  std::string lines(std::min<std::uint64_t>(end - begin, HOTSPOT_LINES), '\0');
  if (!memory.read(const_method + begin, lines.data(), lines.size())) return {};
  return lines;
}

}  // namespace

std::optional<HotSpotMethod> hotspot_method(Pages& memory, const hotspot_layout& layout,
                                            std::uint64_t method) {
  std::uint64_t const_method = 0, constants = 0, of_class = 0, own = 0, name = 0;
  if (!method || method % sizeof method ||
      !read(memory, method + layout.const_method, const_method) ||
      !read(memory, const_method + layout.constants, constants) ||
      !read(memory, constants + layout.pool_holder, of_class) ||
      !read(memory, of_class + layout.class_constants, own) || own != constants ||
      !read(memory, of_class + layout.class_name, name))
    return {};
  HotSpotMethod found;
  found.function = pool_text(memory, layout, constants, const_method + layout.name_index);
  if (found.function.empty()) return {};
  found.function = method_name(symbol_at(memory, layout, name), found.function);
  if (layout.source_file)
    found.file = pool_text(memory, layout, constants,
                           (layout.source_in_class ? of_class : constants) + layout.source_file);
  found.lines = lines_of(memory, layout, const_method);
  return found;
}

}  // namespace coretap::runtimes
