#include "expression/kept.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/sanitize.hpp"
#include "lib/targets/expression.h"

namespace coretap::expression {

namespace {

constexpr std::uint32_t kKeptBytes = 1 << 16;  // of a value
constexpr std::uint32_t kKeptBits = 1 << 24;   // of a type
constexpr std::uint32_t kKeptElements = 1 << 16;
constexpr std::size_t kKeptParts = 4096;  // of a layout
constexpr int kKeptDepth = 32;
constexpr std::uint64_t kKeptColumns = 512;

std::string numbers(std::initializer_list<std::uint64_t> all) {
  std::string bytes;
  for (auto number : all) put_varint(bytes, number);
  return bytes;
}

bool take(std::string_view bytes, std::initializer_list<std::uint64_t*> all) {
  return std::ranges::all_of(all, [&](auto* number) { return take_varint(bytes, *number); });
}

std::uint64_t flags(std::initializer_list<bool> all) {
  std::uint64_t bits = 0, bit = 1;
  for (bool flag : all) {
    bits |= flag ? bit : 0;
    bit <<= 1;
  }
  return bits;
}
bool flag(std::uint64_t bits, int number) { return bits >> number & 1; }

template <class To>
To at_most(std::uint64_t number, To most) {
  return number < most ? static_cast<To>(number) : most;
}

bool read_layout(std::string_view bytes, Layout& to, int depth, std::size_t& parts) {
  constexpr std::size_t kTexts = 5;
  const auto all = unpacked(bytes);
  if (all.size() != kTexts || depth > kKeptDepth || ++parts > kKeptParts) return false;
  std::uint64_t kind = 0, at = 0, bits = 0, is = 0, count = 0;
  if (!take(all[0], {&kind, &at, &bits, &is, &count}) || kind > Layout::unknown) return false;
  to.kind = static_cast<Layout::Kind>(kind);
  to.at = at_most(at, kKeptBits);
  to.bits = at_most(bits, kKeptBits);
  to.is_signed = flag(is, 0);
  to.truth = flag(is, 1);
  to.character = flag(is, 2);
  to.count = at_most(count, kKeptElements);
  to.name = printable(all[1]);
  to.type = printable(all[2]);
  const auto words = unpacked(all[3]);
  for (std::size_t i = 0; i + 1 < words.size() && i < 2 * kKeptParts; i += 2) {
    std::uint64_t value = 0;
    if (!take(words[i + 1], {&value})) return false;
    to.words.emplace_back(printable(words[i]), static_cast<std::int64_t>(value));
  }
  for (auto& one : unpacked(all[4]))
    if (!read_layout(one, to.inner.emplace_back(), depth + 1, parts)) return false;
  return to.kind != Layout::array || to.inner.size() == 1;
}

}  // namespace

std::string packed(const Output& output) {
  auto& type = *output.type;
  return coretap::packed(
      {numbers({static_cast<std::uint64_t>(output.form), output.at, output.room,
                static_cast<std::uint64_t>(type.kind), type.bytes,
                flags({type.is_signed, type.truth, type.character, type.user, type.untyped})}),
       type.name});
}

std::optional<Output> output_from(std::string_view bytes) {
  const auto all = unpacked(bytes);
  std::uint64_t form = 0, at = 0, room = 0, kind = 0, size = 0, is = 0;
  if (all.size() != 2 || !take(all[0], {&form, &at, &room, &kind, &size, &is}) ||
      form > Output::bytes || kind > Type::nothing || at > kKeptBytes || room > kKeptBytes)
    return {};
  auto type = std::make_shared<Type>();
  type->kind = static_cast<Type::Kind>(kind);
  type->name = all[1];
  type->bytes = at_most(size, std::uint32_t{8});
  type->is_signed = flag(is, 0);
  type->truth = flag(is, 1);
  type->character = flag(is, 2);
  type->user = flag(is, 3);
  type->untyped = flag(is, 4);
  return Output{static_cast<Output::Form>(form), std::move(type), static_cast<std::uint32_t>(at),
                static_cast<std::uint32_t>(room)};
}

std::string packed(const Conversion& c) {
  return coretap::packed(
      {numbers({static_cast<std::uint8_t>(c.kind),
                flags({c.left, c.sign, c.blank, c.alternate, c.zeros}), c.width,
                static_cast<std::uint64_t>(c.precision + 1), static_cast<std::uint64_t>(c.bytes)}),
       c.before});
}

std::optional<Conversion> conversion_from(std::string_view bytes) {
  const auto all = unpacked(bytes);
  std::uint64_t kind = 0, is = 0, width = 0, precision = 0, size = 0;
  if (all.size() != 2 || !take(all[0], {&kind, &is, &width, &precision, &size})) return {};
  Conversion c;
  c.before = all[1];
  c.kind = static_cast<char>(kind);
  c.left = flag(is, 0);
  c.sign = flag(is, 1);
  c.blank = flag(is, 2);
  c.alternate = flag(is, 3);
  c.zeros = flag(is, 4);
  c.width = static_cast<std::size_t>(std::min(width, kKeptColumns));
  c.precision = static_cast<int>(std::min(precision, kKeptColumns + 1)) - 1;
  c.bytes = static_cast<int>(std::min<std::uint64_t>(size, 8));
  return c;
}

std::string packed(const Layout& l) {
  std::vector<std::string> words, inner;
  for (auto& [word, value] : l.words) {
    words.push_back(word);
    words.push_back(numbers({static_cast<std::uint64_t>(value)}));
  }
  for (auto& one : l.inner) inner.push_back(packed(one));
  return coretap::packed({numbers({static_cast<std::uint64_t>(l.kind), l.at, l.bits,
                                   flags({l.is_signed, l.truth, l.character}), l.count}),
                          l.name, l.type, coretap::packed(words), coretap::packed(inner)});
}

std::shared_ptr<const Layout> layout_from(std::string_view bytes) {
  auto layout = std::make_shared<Layout>();
  std::size_t parts = 0;
  if (!read_layout(bytes, *layout, 0, parts)) return nullptr;
  return layout;
}

std::string value_structs() {
  return fmt::format("{} {}", sizeof(expression_out), offsetof(expression_out, values));
}

Result<void> take_recorded(std::string_view name,
                           const std::function<bool(std::string_view)>& take) {
  if (take(recalled(Ask::report, name, [] { return std::string(); }))) return {};
  return Error{"the recording has no values that can be shown",
               "it is damaged, or another version has recorded it", "show it with that version",
               kUnsupported};
}

}  // namespace coretap::expression
