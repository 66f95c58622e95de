// Destinations of OTLP pushes, and responses of HTTP servers.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "expect.hpp"
#include "serve/endpoint.hpp"
#include "serve/http_answer.hpp"

namespace coretap::serve {
namespace {

std::string address_of(const Endpoint& e) {
  if (e.address.ss_family == AF_UNIX)
    return reinterpret_cast<const sockaddr_un&>(e.address).sun_path;
  auto& in = reinterpret_cast<const sockaddr_in&>(e.address);
  auto& in6 = reinterpret_cast<const sockaddr_in6&>(e.address);
  const bool old = e.address.ss_family == AF_INET;
  const void* address = old ? static_cast<const void*>(&in.sin_addr) : &in6.sin6_addr;
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(e.address.ss_family, address, text, sizeof text);
  return fmt::format("{} {}", text, ntohs(old ? in.sin_port : in6.sin6_port));
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

TEST(HttpAnswer, Whole) {
  struct {
    std::string text;
    bool ended;
    int status;
    std::string body;
  } const kGood[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", false, 200, "ab"},
      {"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", false, 200, ""},
      {"HTTP/1.0 404 Not Found\r\n\r\nno", true, 404, "no"},
      {"HTTP/1.1 204 No Content\r\n\r\n", false, 204, ""},
      {"HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", false, 503, ""},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\nA \r\n0123456789\r\n"
       "0\r\n\r\n",
       false, 200, "abc0123456789"},
  };
  for (auto& good : kGood) {
    auto answer = parse_answer(good.text, good.ended);
    ASSERT_TRUE(answer) << good.text;
    EXPECT_EQ(answer->status, good.status);
    EXPECT_EQ(answer->body, good.body);
    EXPECT_EQ(answer->retry_after, std::nullopt);
    // A response needs a complete head.
    for (std::size_t n = 0; n < good.text.find("\r\n\r\n"); n++)
      EXPECT_FALSE(parse_answer(std::string_view(good.text).substr(0, n), false)) << n;
  }
}

TEST(HttpAnswer, RetryAfter) {
  auto after = [](const std::string& value) {
    return parse_answer(
               "HTTP/1.1 429 x\r\nretry-AFTER: " + value + " \r\nContent-Length: 0\r\n\r\n", false)
        ->retry_after;
  };
  EXPECT_EQ(after("7"), 7u);
  EXPECT_EQ(after("Wed, 21 Oct 2026 07:28:00 GMT"), std::nullopt);
  EXPECT_EQ(after("-1"), std::nullopt);
}

TEST(HttpAnswer, NoneYetOrNever) {
  for (std::string_view bad :
       {"", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 007 OK\r\n\r\n", "hello\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n"})
    EXPECT_FALSE(parse_answer(bad, true)) << bad;
  EXPECT_FALSE(parse_answer("HTTP/1.1 200 OK\r\n\r\nab", false)) << "its end is the connection's";
}

}  // namespace
}  // namespace coretap::serve
