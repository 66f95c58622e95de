// What bpf/net/ipv6.bpf.h finds in packets that are made here, by the formats of RFC 8200 and 4302.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "bpf/kernel/host.h"

namespace {

using u32 = __u32;
using u8 = __u8;

constexpr std::size_t kPage = 4096;

/// What is not in the packet's memory cannot be read.
const u8* readable;
long bpf_probe_read_kernel(void* to, u32 bytes, const void* from) {
  auto at = static_cast<std::size_t>(static_cast<const u8*>(from) - readable);
  if (at + bytes > kPage) return -14;
  std::memcpy(to, from, bytes);
  return 0;
}

#include "net/ipv6.bpf.h"

constexpr u8 kTcp = 6, kUdp = 17;

struct Header {
  u8 kind, units;
  u8 third = 0, fourth = 0;

  std::size_t bytes() const {
    if (kind == IPV6_FRAGMENT) return 8;
    return kind == IPV6_AUTHENTICATION ? (units + 2u) * 4 : (units + 1u) * 8;
  }
};

/// The headers one behind another from byte 40 on, the payload behind them; all of it is there but
/// what is cut off.
ipv6_payload find(const std::vector<Header>& headers, u8 protocol, std::size_t cut = 0) {
  std::vector<u8> packet(kPage, 0xee);
  std::size_t at = 40;
  for (std::size_t i = 0; i < headers.size(); i++) {
    auto& h = headers[i];
    packet[at] = i + 1 < headers.size() ? headers[i + 1].kind : protocol;
    packet[at + 1] = h.units;
    packet[at + 2] = h.third;
    packet[at + 3] = h.fourth;
    at += h.bytes();
  }
  readable = packet.data();
  ipv6_payload p{
      .at = 40, .protocol = headers.empty() ? protocol : headers[0].kind, .headless = false};
  find_ipv6_payload(packet.data(), static_cast<u32>(at - cut), &p);
  return p;
}

TEST(Ipv6, NoExtension) {
  auto p = find({}, kTcp);
  EXPECT_EQ(p.at, 40u);
  EXPECT_EQ(p.protocol, kTcp);
  EXPECT_FALSE(p.headless);
}

TEST(Ipv6, EachExtension) {
  for (auto [header, at] : {std::pair<Header, u32>{{IPV6_HOP_BY_HOP, 0}, 48},
                            {{IPV6_HOP_BY_HOP, 2}, 64},
                            {{IPV6_ROUTING, 2}, 64},
                            {{IPV6_DESTINATION, 255}, 40 + 2048},
                            {{IPV6_FRAGMENT, 0, 0, 1}, 48},
                            {{IPV6_FRAGMENT, 77, 0, 0}, 48},  // reserved, no length
                            {{IPV6_AUTHENTICATION, 4}, 64}}) {
    SCOPED_TRACE(static_cast<unsigned>(header.kind));
    for (u8 protocol : {kTcp, kUdp}) {
      auto p = find({header}, protocol);
      EXPECT_EQ(p.at, at);
      EXPECT_EQ(p.protocol, protocol);
      EXPECT_FALSE(p.headless);
    }
  }
}

TEST(Ipv6, OneBehindAnother) {
  auto p = find({{IPV6_HOP_BY_HOP, 1},
                 {IPV6_DESTINATION, 0},
                 {IPV6_ROUTING, 2},
                 {IPV6_FRAGMENT, 0, 0, 1},
                 {IPV6_DESTINATION, 3}},
                kTcp);
  EXPECT_EQ(p.at, 40u + 16 + 8 + 24 + 8 + 32);
  EXPECT_EQ(p.protocol, kTcp);
}

// Behind the header of a later fragment lies data, which may look like anything.
TEST(Ipv6, FragmentOtherThanTheFirst) {
  for (auto offset : {std::pair<u8, u8>{0, 8}, {0, 9}, {1, 0}, {0xff, 0xf8}}) {
    auto p = find({{IPV6_HOP_BY_HOP, 0}, {IPV6_FRAGMENT, 0, offset.first, offset.second}}, kTcp);
    EXPECT_TRUE(p.headless);
    EXPECT_EQ(p.protocol, kTcp);
    p = find({{IPV6_FRAGMENT, 0, offset.first, offset.second}, {IPV6_DESTINATION, 0}}, kTcp);
    EXPECT_TRUE(p.headless);
    EXPECT_EQ(p.protocol, IPV6_NOTHING) << "the destination options are in the first one";
  }
}

TEST(Ipv6, AtMostEight) {
  std::vector<Header> headers(8, Header{IPV6_DESTINATION, 0});
  EXPECT_EQ(find(headers, kTcp).protocol, kTcp);
  EXPECT_EQ(find(headers, kTcp).at, 40u + 64);
  headers.push_back({IPV6_DESTINATION, 0});
  EXPECT_EQ(find(headers, kTcp).protocol, IPV6_NOTHING);
}

TEST(Ipv6, CutOff) {
  EXPECT_EQ(find({{IPV6_DESTINATION, 0}}, kTcp, 1).protocol, IPV6_NOTHING);
  EXPECT_EQ(find({{IPV6_HOP_BY_HOP, 0}, {IPV6_ROUTING, 0}}, kTcp, 8).protocol, IPV6_NOTHING);
}

TEST(Ipv6, NothingBehind) {
  EXPECT_EQ(find({{IPV6_DESTINATION, 0}}, IPV6_NOTHING).protocol, IPV6_NOTHING);
}

}  // namespace
