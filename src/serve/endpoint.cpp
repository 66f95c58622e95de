#include "serve/endpoint.hpp"

#include <event2/util.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "coretap/parse.hpp"

namespace coretap::serve {

namespace {

constexpr std::string_view kHttp = "http://", kHttps = "https://", kUnix = "unix:";
constexpr std::string_view kUsualPort = "4318";
constexpr char kForms[] =
    "http://127.0.0.1:4318, http://[::1]:4318, http://localhost:4318 or unix:/run/otelcol.sock";

}  // namespace

std::optional<SocketAddress> unix_address(std::string_view path) {
  SocketAddress a;
  auto& un = reinterpret_cast<sockaddr_un&>(a.address);
  if (!path.starts_with('/') || path.size() >= sizeof un.sun_path) return std::nullopt;
  un.sun_family = AF_UNIX;
  memcpy(un.sun_path, path.data(), path.size());
  a.size = sizeof un;
  return a;
}

std::optional<SocketAddress> ip_address(const std::string& text) {
  SocketAddress a;
  auto colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  auto port = parse_unsigned(std::string_view(text).substr(colon + 1));
  int size = sizeof a.address;
  if (!port || *port > 65535 ||
      evutil_parse_sockaddr_port(text.c_str(), reinterpret_cast<sockaddr*>(&a.address), &size) != 0)
    return std::nullopt;
  a.size = static_cast<socklen_t>(size);
  return a;
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with(kUnix)) {
    rest.remove_prefix(kUnix.size());
    auto address = unix_address(rest);
    if (address) return Endpoint{*address, "localhost"};
    return usage(fmt::format("endpoint: '{}' is no absolute path of a socket", rest), kForms);
  }
  if (rest.starts_with(kHttps))
    return usage("endpoint: coretap has no TLS",
                 "push to an OpenTelemetry Collector on this machine, which has it: "
                 "http://127.0.0.1:4318");
  if (!rest.starts_with(kHttp))
    return usage(fmt::format("endpoint: '{}' is no address to push to", text), kForms);
  rest.remove_prefix(kHttp.size());
  Endpoint e;
  e.host = rest.substr(0, rest.find('/'));
  e.path = rest.substr(e.host.size());
  while (e.path.ends_with('/')) e.path.pop_back();
  if (std::ranges::any_of(e.path,
                          [](char c) { return c <= ' ' || c > '~' || c == '?' || c == '#'; }))
    return usage(fmt::format("endpoint: '{}' is no path of a URL", e.path));
  auto colon = e.host.rfind(':');
  if (colon == e.host.npos || e.host.ends_with(']')) {
    colon = e.host.size();
    e.host += fmt::format(":{}", kUsualPort);
  }
  auto port = parse_unsigned(std::string_view(e.host).substr(colon + 1));
  auto address = e.host;
  constexpr std::string_view kLocal = "localhost";
  if (address.substr(0, colon) == kLocal) address.replace(0, kLocal.size(), "127.0.0.1");
  if (!port || !*port || *port > 65535)
    return usage(fmt::format("endpoint: '{}' has no port", text), kForms);
  // Without brackets the end of an IPv6 address would be parsed as a port.
  const bool is_clear = e.host.starts_with('[') || e.host.find(':') == colon;
  auto found = is_clear ? ip_address(address) : std::nullopt;
  if (!found)
    return usage(
        fmt::format("endpoint: '{}' is no address: names of hosts are not resolved", e.host),
        kForms);
  static_cast<SocketAddress&>(e) = *found;
  return e;
}

}  // namespace coretap::serve
