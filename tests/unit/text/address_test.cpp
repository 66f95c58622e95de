#include <arpa/inet.h>

#include "coretap/net.hpp"
#include "expect.hpp"
#include "text/columns.hpp"

namespace coretap {
namespace {

constexpr std::uint8_t kDocumentation[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
                                             0,    0,    0,    0,    0, 0, 0, 1};

TEST(Address, OfBothVersions) {
  EXPECT_EQ(ip_address(4, "\xc0\0\2\1"), "192.0.2.1");
  EXPECT_EQ(ip_address(6, kDocumentation), "2001:db8::1");
  EXPECT_EQ(ip_endpoint(4, "\x7f\0\0\1", 80), "127.0.0.1:80");
  EXPECT_EQ(ip_endpoint(6, kDocumentation, 65535), "[2001:db8::1]:65535");
}

TEST(Address, AsTheCLibraryHasIt) {
  for (unsigned at = 0; at < 4; at++)
    for (unsigned value = 0; value < 256; value++) {
      std::uint8_t bytes[4] = {10, 200, 0, 99};
      bytes[at] = static_cast<std::uint8_t>(value);
      char text[INET_ADDRSTRLEN] = "";
      ASSERT_TRUE(inet_ntop(AF_INET, bytes, text, sizeof text));
      EXPECT_EQ(ip_address(4, bytes), text);
    }
}

TEST(Address, NamesOfNumbers) {
  auto named = [](auto name) {
    return [name](const std::string& n) { return std::string(name(std::stoi(n))); };
  };
  expect_each(named(tcp_state), {"1 => ESTABLISHED", "12 => NEW_SYN_RECV", "0 => 0", "13 => 13"});
  expect_each(named(ip_protocol), {"6 => TCP", "17 => UDP", "262 => MPTCP", "253 => 253"});
  EXPECT_EQ(show(as::kilobytes, std::uint64_t{1023}, {}), "    0");
  EXPECT_EQ(show(as::kilobytes, std::uint64_t{70000}, {}), "   68");
}

struct FlowRecord {
  std::uint64_t before;
  flow ends;
};

TEST(Address, FieldsOfAFlow) {
  FlowRecord r{};
  memcpy(r.ends.local, kDocumentation, 16);
  r.ends.ip = 6;
  r.ends.lport = 443;
  r.ends.rport = 51000;
  auto text = [&](const Field& f) { return std::get<std::string>(f.read(&r, {})); };
  auto number = [&](const Field& f) { return std::get<std::uint64_t>(f.read(&r, {})); };
  EXPECT_EQ(text(net::local_address<&FlowRecord::ends>()), "2001:db8::1");
  EXPECT_EQ(text(net::remote_address<&FlowRecord::ends>()), "::");
  EXPECT_EQ(number(net::local_port<&FlowRecord::ends>()), 443u);
  EXPECT_EQ(number(net::remote_port<&FlowRecord::ends>()), 51000u);
  EXPECT_EQ(number(net::ip_version<&FlowRecord::ends>()), 6u);
}

TEST(Address, WideColumns) {
  FlowRecord r{};
  r.ends.ip = 4;
  for (bool wide : {false, true}) {
    Config config;
    if (wide) config.give("wide", "");
    Columns columns;
    columns.choose(config,
                   {net::local_address<&FlowRecord::ends>(), net::local_port<&FlowRecord::ends>()});
    EXPECT_EQ(columns.titles().find("LPORT"), wide ? 40u : 16u);
    EXPECT_EQ(columns.row(&r, {}).find_last_of('0'), wide ? 40u : 16u);
  }
}

}  // namespace
}  // namespace coretap
