// Results of bpf/net/ipv6.bpf.h for packets made here, in the formats of RFC 8200 and 4302.
#include <netinet/in.h>

#include "bpf/library.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

struct Header {
  std::uint8_t kind, units, third = 0, fourth = 0;

  std::size_t bytes() const {
    if (kind == IPPROTO_FRAGMENT) return 8;
    return kind == IPPROTO_AH ? (units + 2u) * 4 : (units + 1u) * 8;
  }
};

struct Payload {
  std::uint64_t at;
  unsigned protocol;
  bool headless = false;
  bool operator==(const Payload&) const = default;
};
void PrintTo(const Payload& p, std::ostream* out) {
  *out << "at " << p.at << " protocol " << p.protocol << (p.headless ? " headless" : "");
}

class Ipv6 : public test::WithLibrary<Ipv6> {
 protected:
  /// The headers in sequence from byte 40 on, then the payload; `cut` bytes are missing at the end.
  Payload find(const std::vector<Header>& headers, std::uint8_t protocol, std::size_t cut = 0) {
    memset(data.packet, 0xee, sizeof data.packet);
    std::size_t at = 40;
    for (std::size_t i = 0; i < headers.size(); i++) {
      auto& h = headers[i];
      const std::uint8_t first[] = {i + 1 < headers.size() ? headers[i + 1].kind : protocol,
                                    h.units, h.third, h.fourth};
      memcpy(data.packet + at, first, sizeof first);
      at += h.bytes();
    }
    auto found = library.run(library->progs.run_ipv6, headers.empty() ? protocol : headers[0].kind,
                             at - cut);
    return {data.result, found & 0xff, found >> 8 == 1};
  }
};

TEST_F(Ipv6, EachExtension) {
  for (std::uint8_t protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
    EXPECT_EQ(find({}, protocol), (Payload{40, protocol}));
    for (auto [header, at] : {std::pair<Header, std::uint64_t>{{IPPROTO_HOPOPTS, 0}, 48},
                              {{IPPROTO_HOPOPTS, 2}, 64},
                              {{IPPROTO_ROUTING, 2}, 64},
                              {{IPPROTO_DSTOPTS, 255}, 40 + 2048},
                              {{IPPROTO_FRAGMENT, 0, 0, 1}, 48},
                              {{IPPROTO_FRAGMENT, 77, 0, 0}, 48},  // reserved, not a length
                              {{IPPROTO_AH, 4}, 64}})
      EXPECT_EQ(find({header}, protocol), (Payload{at, protocol})) << unsigned{header.kind};
  }
}

TEST_F(Ipv6, OneBehindAnother) {
  EXPECT_EQ(find({{IPPROTO_HOPOPTS, 1},
                  {IPPROTO_DSTOPTS, 0},
                  {IPPROTO_ROUTING, 2},
                  {IPPROTO_FRAGMENT, 0, 0, 1},
                  {IPPROTO_DSTOPTS, 3}},
                 IPPROTO_TCP),
            (Payload{40 + 16 + 8 + 24 + 8 + 32, IPPROTO_TCP}));
}

// After the header of a later fragment come arbitrary data.
TEST_F(Ipv6, FragmentOtherThanTheFirst) {
  for (auto [high, low] :
       {std::pair<std::uint8_t, std::uint8_t>{0, 8}, {0, 9}, {1, 0}, {0xff, 0xf8}}) {
    Header fragment{IPPROTO_FRAGMENT, 0, high, low};
    EXPECT_EQ(find({{IPPROTO_HOPOPTS, 0}, fragment}, IPPROTO_TCP),
              (Payload{56, IPPROTO_TCP, true}));
    EXPECT_EQ(find({fragment, {IPPROTO_DSTOPTS, 0}}, IPPROTO_TCP),
              (Payload{48, IPPROTO_NONE, true}))
        << "the destination options are in the first one";
  }
}

TEST_F(Ipv6, AtMostEight) {
  std::vector<Header> headers(8, Header{IPPROTO_DSTOPTS, 0});
  EXPECT_EQ(find(headers, IPPROTO_TCP), (Payload{40 + 64, IPPROTO_TCP}));
  headers.push_back({IPPROTO_DSTOPTS, 0});
  EXPECT_EQ(find(headers, IPPROTO_TCP).protocol, unsigned{IPPROTO_NONE});
}

TEST_F(Ipv6, CutOffOrNothingBehind) {
  EXPECT_EQ(find({{IPPROTO_DSTOPTS, 0}}, IPPROTO_TCP, 1).protocol, unsigned{IPPROTO_NONE});
  EXPECT_EQ(find({{IPPROTO_HOPOPTS, 0}, {IPPROTO_ROUTING, 0}}, IPPROTO_TCP, 8).protocol,
            unsigned{IPPROTO_NONE});
  EXPECT_EQ(find({{IPPROTO_DSTOPTS, 0}}, IPPROTO_NONE).protocol, unsigned{IPPROTO_NONE});
}

}  // namespace
}  // namespace coretap
