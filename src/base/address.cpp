#include "coretap/address.hpp"

#include <arpa/inet.h>

#include <string>

#include "coretap/parse.hpp"

namespace coretap {

std::optional<AddressPrefix> parse_address_prefix(std::string_view text) {
  auto slash = text.find('/');
  std::string address(text.substr(0, slash));
  bool v4 = address.find(':') == std::string::npos;
  std::uint32_t most = v4 ? 32 : 128;
  AddressPrefix prefix;
  if (v4) prefix.address[10] = prefix.address[11] = 0xff;
  if (inet_pton(v4 ? AF_INET : AF_INET6, address.c_str(), prefix.address.data() + (v4 ? 12 : 0)) !=
      1)
    return std::nullopt;
  if (slash != std::string_view::npos) {
    auto bits = parse_unsigned(text.substr(slash + 1));
    if (!bits || *bits > most) return std::nullopt;
    prefix.bits = 128 - most + static_cast<std::uint32_t>(*bits);
  }
  for (std::uint32_t bit = prefix.bits; bit < 128; bit++)
    prefix.address[bit / 8] &= static_cast<std::uint8_t>(~(0x80 >> bit % 8));
  return prefix;
}

}  // namespace coretap
