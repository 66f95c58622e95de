#include "runtimes/line_table.hpp"

namespace coretap::runtimes {

namespace {

constexpr unsigned kFirstWithoutLines = 10, kFirstWithLocations = 11;

/// Reads the entries of a table of locations.
class Locations {
 public:
  Locations(std::string_view table, std::uint32_t first) : rest_(table), line_(first) {}

  /// False at the end, or if the entry is damaged.
  bool next() {
    if (rest_.empty()) return false;
    const auto head = byte();
    if (!(head & 0x80)) return false;
    units_ = (head & 7) + 1U;
    const unsigned kind = head >> 3 & 15;
    has_line_ = kind != 15;
    if (kind < 10) {
      skip(1);
    } else if (kind < 13) {
      line_ += kind - 10;
      skip(2);
    } else if (kind < 15) {
      auto delta = number();
      line_ += delta & 1 ? 0 - (delta >> 1) : delta >> 1;
      for (int i = 0; kind == 14 && i < 3; i++) number();
    }
    return !damaged_;
  }
  std::uint32_t units() const { return units_; }
  bool has_line() const { return has_line_; }
  std::uint32_t line() const { return line_; }

 private:
  std::uint8_t byte() {
    if (rest_.empty()) {
      damaged_ = true;
      return 0;
    }
    auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  void skip(int bytes) {
    for (; bytes; bytes--) byte();
  }
  /// Six bits in each byte, the lowest first.
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
      auto b = byte();
      value |= (b & 63U) << shift;
      if (!(b & 64)) return value;
    }
    damaged_ = true;
    return value;
  }

  std::string_view rest_;
  std::uint32_t line_, units_ = 0;
  bool has_line_ = false, damaged_ = false;
};

std::optional<std::uint32_t> line_in_pairs(unsigned minor, std::string_view table,
                                           std::uint32_t first, std::uint32_t place) {
  const std::uint32_t address = place * 2;
  std::uint32_t at = 0, line = first;
  for (; table.size() >= 2; table.remove_prefix(2)) {
    const auto bytes = static_cast<std::uint8_t>(table[0]);
    const auto lines = static_cast<std::int8_t>(table[1]);
    const auto next = line + static_cast<std::uint32_t>(lines);
    if (minor >= kFirstWithoutLines) {  // the bytes that the entry is about
      const bool none = lines == -128;
      if (!none) line = next;
      if (address < at + bytes) return none ? std::nullopt : std::optional(line);
      at += bytes;
    } else {  // the bytes before the new line
      if (address < at + bytes) return line;
      at += bytes;
      line = next;
    }
  }
  return minor >= kFirstWithoutLines ? std::nullopt : std::optional(line);
}

}  // namespace

std::optional<std::uint32_t> line_at(unsigned minor, std::string_view table, std::uint32_t first,
                                     std::uint32_t place) {
  if (minor < kFirstWithLocations) return line_in_pairs(minor, table, first, place);
  Locations entries(table, first);
  std::uint32_t at = 0;
  while (entries.next()) {
    at += entries.units();
    if (place < at) return entries.has_line() ? std::optional(entries.line()) : std::nullopt;
  }
  return {};
}

bool has_lines(unsigned minor, std::string_view table) {
  if (minor < kFirstWithLocations) return true;
  Locations entries(table, 0);
  bool any = false;
  while (entries.next()) {
    if (entries.has_line()) return true;
    any = true;
  }
  return !any;  // a table that could not be read
}

}  // namespace coretap::runtimes
