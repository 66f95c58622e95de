// IPv4 and IPv6 addresses as text, and prefixes of addresses.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coretap {

/// Addresses that share their first bits. An IPv4 address is mapped (::ffff:192.0.2.1).
struct AddressPrefix {
  std::array<std::uint8_t, 16> address{};  ///< in network order; 0 after the prefix
  std::uint32_t bits = 128;                ///< for IPv4, 96 more than written

  bool operator==(const AddressPrefix&) const = default;
};

/// "192.0.2.1", "192.0.2.0/24", "2001:db8::/32".
std::optional<AddressPrefix> parse_address_prefix(std::string_view text);

}  // namespace coretap
