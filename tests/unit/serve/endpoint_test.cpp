// Where OTLP is pushed to.
#include "serve/endpoint.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "expect.hpp"

namespace coretap::serve {
namespace {

std::string address_of(const Endpoint& e) {
  char text[INET6_ADDRSTRLEN] = {};
  if (e.address.ss_family == AF_UNIX)
    return reinterpret_cast<const sockaddr_un&>(e.address).sun_path;
  if (e.address.ss_family == AF_INET) {
    auto& in = reinterpret_cast<const sockaddr_in&>(e.address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return std::string(text) + " " + std::to_string(ntohs(in.sin_port));
  }
  auto& in = reinterpret_cast<const sockaddr_in6&>(e.address);
  inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
  return std::string(text) + " " + std::to_string(ntohs(in.sin6_port));
}

TEST(Endpoint, Addresses) {
  struct {
    std::string text, address, host, path;
  } const kGood[] = {
      {"http://127.0.0.1:4317", "127.0.0.1 4317", "127.0.0.1:4317", ""},
      {"http://10.0.0.1", "10.0.0.1 4318", "10.0.0.1:4318", ""},
      {"http://localhost/", "127.0.0.1 4318", "localhost:4318", ""},
      {"http://localhost:80", "127.0.0.1 80", "localhost:80", ""},
      {"http://[::1]:8428/opentelemetry/", "::1 8428", "[::1]:8428", "/opentelemetry"},
      {"http://[fe80::1]", "fe80::1 4318", "[fe80::1]:4318", ""},
      {"unix:/run/otelcol.sock", "/run/otelcol.sock", "localhost", ""},
  };
  for (auto& good : kGood) {
    auto e = parse_endpoint(good.text);
    ASSERT_TRUE(e) << good.text << ": " << e.error().what;
    EXPECT_EQ(address_of(*e), good.address) << good.text;
    EXPECT_EQ(e->host, good.host) << good.text;
    EXPECT_EQ(e->path, good.path) << good.text;
  }
}

TEST(Endpoint, WhatIsNone) {
  auto why = [](const std::string& text) {
    auto e = parse_endpoint(text);
    if (e) return std::string("taken");
    EXPECT_EQ(e.error().status, kUsage);
    EXPECT_FALSE(e.error().hint.empty() && !says(e.error().what, "no path of a URL")) << text;
    return e.error().what;
  };
  expect_says(
      why,
      {" => no address to push to", "127.0.0.1:4318 => no address to push to",
       "grpc://127.0.0.1:4317 => no address to push to", "https://127.0.0.1:4318 => no TLS",
       "http:// => no address", "http://collector.example:4318 => names of hosts are not resolved",
       "http://localhosts => names of hosts are not resolved",
       "http://user@127.0.0.1 => names of hosts are not resolved",
       "http://127.0.0.1:0 => has no port", "http://127.0.0.1:65536 => has no port",
       "http://127.0.0.1:x => has no port", "http://::1:4318 => names of hosts are not resolved",
       "http://127.0.0.1/a b => no path of a URL", "http://127.0.0.1/a\r\nX: y => no path of a URL",
       "http://127.0.0.1/?a=b => no path of a URL", "unix: => no absolute path",
       "unix:run/x => no absolute path"});
  EXPECT_TRUE(says(why("unix:/" + std::string(200, 'x')), "no absolute path"));
}

}  // namespace
}  // namespace coretap::serve
