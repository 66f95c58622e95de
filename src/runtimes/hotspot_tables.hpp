// The tables that HotSpot (the Java virtual machine) has for debuggers: where its structures have
// their fields (src/hotspot/share/runtime/vmStructs.cpp in its sources). Untrusted input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace coretap::runtimes {

/// Memory of one process.
using Memory = std::function<bool(std::uint64_t address, std::span<char> to)>;

/// Reads memory by pages, which it keeps: tables refer to thousands of short texts.
class Pages {
 public:
  static constexpr std::size_t kPage = 4096, kMostPages = 4096, kMostText = 200;

  explicit Pages(const Memory& memory) : memory_(memory) {}

  bool read(std::uint64_t address, void* to, std::size_t bytes);
  /// Nothing: it cannot be read, or it is longer than kMostText.
  std::optional<std::string> text(std::uint64_t address);

 private:
  const std::string* page_of(std::uint64_t address);

  const Memory& memory_;
  std::unordered_map<std::uint64_t, std::string> pages_;
};

/// The tables of one process: offsets of fields, addresses of static ones, and sizes of types.
class HotSpotTables {
 public:
  static constexpr std::size_t kMostFields = 1 << 14, kMostTypes = 1 << 13;
  static constexpr std::uint64_t kMostFieldOffset = 4096;

  struct Field {
    bool is_static = false;
    std::uint64_t at = 0;  ///< offset or address
    std::string type;
  };

  /// `structs`, `types`: addresses of the variables that point to the tables. Nothing: the library
  /// has not filled them yet, or they are not as expected.
  static std::optional<HotSpotTables> read(const Memory& memory, std::uint64_t structs,
                                           std::uint64_t types);

  /// By "Type::_field"; of several names the first one that exists.
  const Field* field(std::string_view name) const;
  /// Of a member; nothing: there is none, or it is too far away.
  std::optional<std::uint64_t> offset(std::string_view name) const;
  /// Of a static variable.
  std::optional<std::uint64_t> address(std::string_view name) const;
  std::optional<std::uint64_t> size_of(std::string_view type) const;

 private:
  std::map<std::string, Field, std::less<>> fields_;
  std::map<std::string, std::uint64_t, std::less<>> types_;
};

/// Collects offsets of members; one that is missing or too large makes all of them useless.
class HotSpotOffsets {
 public:
  struct Integer {
    std::uint16_t at = 0, bytes = 0;
  };

  explicit HotSpotOffsets(const HotSpotTables& tables) : tables_(tables) {}

  bool has(std::string_view name) const { return tables_.field(name) != nullptr; }
  std::uint16_t of(std::string_view name);
  std::uint16_t first_of(std::string_view name, std::string_view other) {
    return of(has(name) ? name : other);
  }
  Integer integer(std::string_view name);
  std::uint16_t size(std::string_view type);

  bool fits = true;

 private:
  const HotSpotTables& tables_;
};

}  // namespace coretap::runtimes
