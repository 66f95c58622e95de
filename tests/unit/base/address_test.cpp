#include "coretap/address.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

AddressPrefix parsed(std::string_view text) {
  auto prefix = parse_address_prefix(text);
  EXPECT_TRUE(prefix) << text;
  return prefix.value_or(AddressPrefix{});
}

TEST(AddressPrefix, Ipv4IsMapped) {
  AddressPrefix expected{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}, 128};
  EXPECT_EQ(parsed("192.0.2.1"), expected);
  EXPECT_EQ(parsed("::ffff:192.0.2.1"), expected);
  expected.bits = 120;
  expected.address[15] = 0;
  EXPECT_EQ(parsed("192.0.2.0/24"), expected);
  EXPECT_EQ(parsed("192.0.2.77/24"), expected) << "what is behind the prefix does not count";
  EXPECT_EQ(parsed("0.0.0.0/0").bits, 96u);
}

TEST(AddressPrefix, Ipv6) {
  auto prefix = parsed("2001:db8:ffff::1/33");
  EXPECT_EQ(prefix.bits, 33u);
  EXPECT_EQ(prefix.address, (std::array<std::uint8_t, 16>{0x20, 0x01, 0x0d, 0xb8, 0x80}));
  EXPECT_EQ(parsed("::/0"), (AddressPrefix{{}, 0}));
}

TEST(AddressPrefix, Malformed) {
  for (auto* bad : {"", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1",
                    "::1/129", "::g", "/8", "host", "1.2.3.4/8/8", "[::1]", "fe80::1%eth0"})
    EXPECT_FALSE(parse_address_prefix(bad)) << bad;
}

}  // namespace
}  // namespace coretap
