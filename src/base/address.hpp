// Addresses of the Internet protocols, as text and with prefixes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coretap {

/// Addresses that share their first bits. An IPv4 address is mapped (::ffff:192.0.2.1).
struct AddressPrefix {
  std::array<std::uint8_t, 16> address{};  ///< in network order; 0 behind the prefix
  std::uint32_t bits = 128;                ///< 96 more than written for IPv4

  bool operator==(const AddressPrefix&) const = default;
};

/// "192.0.2.1", "192.0.2.0/24", "2001:db8::/32".
std::optional<AddressPrefix> parse_address_prefix(std::string_view text);

}  // namespace coretap
